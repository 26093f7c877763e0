// How threads are laid over a row: kThreads of them, each with kItems vectors of kVec elements,
// strided so that neighbouring threads read neighbouring vectors.
#pragma once

#include "device/convert.cuh"
#include "device/vector.cuh"

namespace tunerd::device {

template <int kThreads, int kVec, int kItems>
struct RowTile {
  float value[kItems][kVec];

  static __device__ long long column(int item, int lane) { return ((long long)item * kThreads + lane) * kVec; }

  // Columns past the end read as `fill`.
  __device__ void load(const element_t* row, long long cols, int lane, float fill) {
#pragma unroll
    for (int item = 0; item < kItems; ++item) {
      const long long c = column(item, lane);
      if (c < cols) {
        const auto vector = load_vector<element_t, kVec>(row + c);
#pragma unroll
        for (int v = 0; v < kVec; ++v) value[item][v] = to_float(vector.value[v]);
      } else {
#pragma unroll
        for (int v = 0; v < kVec; ++v) value[item][v] = fill;
      }
    }
  }

  __device__ void store(element_t* row, long long cols, int lane) const {
#pragma unroll
    for (int item = 0; item < kItems; ++item) {
      const long long c = column(item, lane);
      if (c < cols) {
        Vector<element_t, kVec> out;
#pragma unroll
        for (int v = 0; v < kVec; ++v) out.value[v] = from_float<element_t>(value[item][v]);
        store_vector(row + c, out);
      }
    }
  }
};

}  // namespace tunerd::device
