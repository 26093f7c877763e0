// N elements moved as one access of up to 16 bytes.
#pragma once

namespace tunerd::device {

template <int BYTES> struct Raw;
template <> struct Raw<1> { using type = unsigned char; };
template <> struct Raw<2> { using type = unsigned short; };
template <> struct Raw<4> { using type = unsigned; };
template <> struct Raw<8> { using type = uint2; };
template <> struct Raw<16> { using type = uint4; };

template <class T, int N>
struct alignas(sizeof(T) * N) Vector {
  T value[N];
};

// `at` is aligned to sizeof(T) * N.
template <class T, int N>
inline __device__ Vector<T, N> load_vector(const T* at) {
  using raw_t = typename Raw<sizeof(T) * N>::type;
  union { raw_t raw; Vector<T, N> vector; } word;
  word.raw = *reinterpret_cast<const raw_t*>(at);
  return word.vector;
}

template <class T, int N>
inline __device__ void store_vector(T* at, const Vector<T, N>& vector) {
  using raw_t = typename Raw<sizeof(T) * N>::type;
  *reinterpret_cast<raw_t*>(at) = *reinterpret_cast<const raw_t*>(&vector);
}

// 16 bytes that are read once: they pass by L1. The address is a multiple of 16, and nobody writes there while the kernel runs.
inline __device__ uint4 load_once_16(const void* at) {
  uint4 out;
  asm("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(out.x), "=r"(out.y), "=r"(out.z), "=r"(out.w) : "l"(at));
  return out;
}

}  // namespace tunerd::device
