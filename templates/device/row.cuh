// How threads are laid over a row: kThreads of them, each with kItems vectors of kVec elements,
// strided so that neighbouring threads read neighbouring vectors.
#pragma once

#include "device/access.cuh"
#include "device/convert.cuh"

namespace tunerd::device {

// Element v of a vector that lies in these words; and the word of two elements, of which the second is ignored in a vector of one.
template <class T>
inline __device__ float element_of(const unsigned* word, int v) {
  if constexpr (sizeof(T) == 4) return __uint_as_float(word[v]);
  else return to_float(T{(unsigned short)(word[v / 2] >> (v % 2 * 16))});
}
template <class T>
inline __device__ unsigned word_of(float low, float high) {
  if constexpr (sizeof(T) == 4) return __float_as_uint(low);
  else return pack2(low, high, T{});
}

// Kept as the words that were loaded, and made fp32 where it is used: a 16-bit element costs half a register.
template <int kThreads, int kVec, int kItems, bool kOnce = false>
struct RowTile {
  static constexpr int kBytes = kVec * (int)sizeof(element_t), kWords = (kBytes + 3) / 4, kPerWord = kVec / kWords;
  unsigned word[kItems][kWords];

  // The row fits in the tile, so that columns are 32-bit; an item is a constant distance from the thread's first.
  static constexpr int kStep = kThreads * kVec;
  static __device__ bool inside(int item, long long cols, int lane) { return item * kStep < (int)cols - lane * kVec; }

  // Columns past the end read as `fill`.
  __device__ void load(const element_t* row, long long cols, int lane, float fill) {
    const unsigned blank = word_of<element_t>(fill, fill);
#pragma unroll
    for (int item = 0; item < kItems; ++item) {
      if (inside(item, cols, lane)) {
        load_words<kBytes, kOnce>(row + lane * kVec + item * kStep, word[item]);
      } else {
#pragma unroll
        for (int w = 0; w < kWords; ++w) word[item][w] = blank;
      }
    }
  }

  __device__ void store(element_t* row, long long cols, int lane) const {
#pragma unroll
    for (int item = 0; item < kItems; ++item)
      if (inside(item, cols, lane)) store_words<kBytes, kOnce>(row + lane * kVec + item * kStep, word[item]);
  }

  __device__ float get(int item, int v) const { return element_of<element_t>(word[item], v); }

  // f(value, item, v) of every element, in order.
  template <class F>
  __device__ void each(F f) const {
#pragma unroll
    for (int item = 0; item < kItems; ++item)
#pragma unroll
      for (int v = 0; v < kVec; ++v) f(get(item, v), item, v);
  }

  // Every element becomes f(value, item, v), rounded to the element's type.
  template <class F>
  __device__ void map(F f) {
#pragma unroll
    for (int item = 0; item < kItems; ++item)
#pragma unroll
      for (int v = 0; v < kVec; v += kPerWord) {
        const float low = f(get(item, v), item, v), high = kPerWord == 2 ? f(get(item, v + 1), item, v + 1) : 0.0f;
        word[item][v / kPerWord] = word_of<element_t>(low, high);
      }
  }

  // Forgets what the compiler knows of the words, or it would keep their fp32 values from one pass, or one row, to the next.
  __device__ void keep_packed() {
#pragma unroll
    for (int item = 0; item < kItems; ++item)
#pragma unroll
      for (int w = 0; w < kWords; ++w) asm volatile("" : "+r"(word[item][w]));
  }
};

}  // namespace tunerd::device
