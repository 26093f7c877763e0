// Element types and their conversions, without cuda_bf16.h or cuda_fp16.h. Round to nearest even; NaN stays NaN.
#pragma once

namespace tunerd::device {

struct alignas(2) bf16_t { unsigned short bits; };
struct alignas(2) fp16_t { unsigned short bits; };

#if defined(DTYPE_BF16)
using element_t = bf16_t;
#elif defined(DTYPE_FP16)
using element_t = fp16_t;
#elif defined(DTYPE_FP32)
using element_t = float;
#endif

inline __device__ float to_float(float value) { return value; }
inline __device__ float to_float(bf16_t value) { return __uint_as_float((unsigned)value.bits << 16); }
inline __device__ float to_float(fp16_t value) {
  float out;
  asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(value.bits));
  return out;
}

template <class T>
inline __device__ double to_double(T value) { return (double)to_float(value); }

template <class T> __device__ T from_float(float value);

template <> inline __device__ float from_float<float>(float value) { return value; }

template <> inline __device__ fp16_t from_float<fp16_t>(float value) {
  fp16_t out;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out.bits) : "f"(value));
  return out;
}

template <> inline __device__ bf16_t from_float<bf16_t>(float value) {
  bf16_t out;
#if __CUDA_ARCH__ >= 900
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out.bits) : "f"(value));
#else
  const unsigned bits = __float_as_uint(value);
  const unsigned rounded = (bits & 0x7fffffffu) > 0x7f800000u ? (bits | 0x400000u) : bits + 0x7fffu + ((bits >> 16) & 1u);
  out.bits = (unsigned short)(rounded >> 16);
#endif
  return out;
}

// Two values in one 32-bit word, the first in the low half.
inline __device__ unsigned pack2(float low, float high, bf16_t) {
  unsigned out;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
#else
  out = (unsigned)from_float<bf16_t>(low).bits | ((unsigned)from_float<bf16_t>(high).bits << 16);
#endif
  return out;
}
inline __device__ unsigned pack2(float low, float high, fp16_t) {
  return (unsigned)from_float<fp16_t>(low).bits | ((unsigned)from_float<fp16_t>(high).bits << 16);
}

// The two values of such a word.
inline __device__ float2 unpack2(unsigned word, bf16_t) { return {__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)}; }
inline __device__ float2 unpack2(unsigned word, fp16_t) { return {to_float(fp16_t{(unsigned short)word}), to_float(fp16_t{(unsigned short)(word >> 16)})}; }

}  // namespace tunerd::device
