// N bytes between registers and global memory as 32-bit words, plainly or `once`: past L1 on the way in, first to leave L2 on the way out.
// PTX ISA 9.7.9.8 (ld: .L1::no_allocate), 9.7.9.11 (st: .cs).
#pragma once

namespace tunerd::device {

// `at` is aligned to kBytes, which is 2, 4, 8 or 16. Not the read-only path: an op may be run in place.
template <int kBytes, bool kOnce>
inline __device__ void load_words(const void* at, unsigned (&word)[(kBytes + 3) / 4]) {
  if constexpr (kBytes == 2) {
    word[0] = *static_cast<const unsigned short*>(at);
  } else if constexpr (!kOnce) {
    if constexpr (kBytes == 4) word[0] = *static_cast<const unsigned*>(at);
    if constexpr (kBytes == 8) {
      const uint2 raw = *static_cast<const uint2*>(at);
      word[0] = raw.x, word[1] = raw.y;
    }
    if constexpr (kBytes == 16) {
      const uint4 raw = *static_cast<const uint4*>(at);
      word[0] = raw.x, word[1] = raw.y, word[2] = raw.z, word[3] = raw.w;
    }
  } else {
    if constexpr (kBytes == 4) asm volatile("ld.global.L1::no_allocate.u32 %0, [%1];" : "=r"(word[0]) : "l"(at));
    if constexpr (kBytes == 8) asm volatile("ld.global.L1::no_allocate.v2.u32 {%0, %1}, [%2];" : "=r"(word[0]), "=r"(word[1]) : "l"(at));
    if constexpr (kBytes == 16)
      asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3]) : "l"(at));
  }
}

template <int kBytes, bool kOnce>
inline __device__ void store_words(void* at, const unsigned (&word)[(kBytes + 3) / 4]) {
  if constexpr (kBytes == 2) {
    *static_cast<unsigned short*>(at) = (unsigned short)word[0];
  } else if constexpr (!kOnce) {
    if constexpr (kBytes == 4) *static_cast<unsigned*>(at) = word[0];
    if constexpr (kBytes == 8) *static_cast<uint2*>(at) = uint2{word[0], word[1]};
    if constexpr (kBytes == 16) *static_cast<uint4*>(at) = uint4{word[0], word[1], word[2], word[3]};
  } else {
    if constexpr (kBytes == 4) asm volatile("st.global.cs.u32 [%0], %1;" ::"l"(at), "r"(word[0]) : "memory");
    if constexpr (kBytes == 8) asm volatile("st.global.cs.v2.u32 [%0], {%1, %2};" ::"l"(at), "r"(word[0]), "r"(word[1]) : "memory");
    if constexpr (kBytes == 16)
      asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(word[0]), "r"(word[1]), "r"(word[2]), "r"(word[3]) : "memory");
  }
}

}  // namespace tunerd::device
