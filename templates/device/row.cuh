// How a block's threads are laid over rows: TPR threads a row, RPB rows a block, each thread ITEMS vectors of VEC elements,
// strided so that neighbouring threads read neighbouring vectors.
#pragma once

#include "device/convert.cuh"
#include "device/vector.cuh"

namespace tunerd::device {

template <int TPR, int VEC, int ITEMS>
struct RowTile {
  float value[ITEMS][VEC];

  static __device__ long long column(int item, int lane) { return ((long long)item * TPR + lane) * VEC; }

  // Columns past the end read as `fill`.
  __device__ void load(const element_t* row, long long cols, int lane, float fill) {
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
      const long long c = column(item, lane);
      if (c < cols) {
        const auto vector = load_vector<element_t, VEC>(row + c);
#pragma unroll
        for (int v = 0; v < VEC; ++v) value[item][v] = to_float(vector.value[v]);
      } else {
#pragma unroll
        for (int v = 0; v < VEC; ++v) value[item][v] = fill;
      }
    }
  }

  __device__ void store(element_t* row, long long cols, int lane) const {
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
      const long long c = column(item, lane);
      if (c < cols) {
        Vector<element_t, VEC> out;
#pragma unroll
        for (int v = 0; v < VEC; ++v) out.value[v] = from_float<element_t>(value[item][v]);
        store_vector(row + c, out);
      }
    }
  }
};

}  // namespace tunerd::device
