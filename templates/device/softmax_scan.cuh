// Maximum and sum of exponentials of a row of any length, online: the sum is rescaled when the maximum moves.
#pragma once

#include "device/access.cuh"
#include "device/convert.cuh"
#include "device/row.cuh"
#include "device/softmax.cuh"
#include "device/vector.cuh"

namespace tunerd::device {

// Of kThreads threads, kVec elements a load, kUnroll loads at once. Returns what merge_softmax takes: the same in each of a warp's lanes.
template <int kThreads, int kVec, int kUnroll, bool kOnce>
inline __device__ float2 scan_softmax(const element_t* row, long long cols, int lane) {
  constexpr int kLanes = kThreads < 32 ? kThreads : 32;
  constexpr long long kStep = (long long)kThreads * kVec * kUnroll;
  float top = Max::identity(), sum = 0.0f;
  for (long long base = 0; base < cols; base += kStep) {
    RowTile<kThreads, kVec, kUnroll, kOnce> tile;
    tile.load(row + base, cols - base < kStep ? cols - base : kStep, lane, Max::identity());
    float high = top;
    tile.each([&](float value, int, int) { high = fmaxf(high, value); });
    const float against = exp_base(high);
    sum *= exp_of(top - against);
    tile.each([&](float value, int, int) { sum += exp_of(value - against); });
    top = high;
  }
  const float highest = reduce_lanes<Max, kLanes>(top);
  // A thread that saw only -inf has a zero sum, or a NaN that must stay one.
  sum *= exp_of(top - exp_base(highest));
  return {highest, reduce_lanes<Sum, kLanes>(sum)};
}

}  // namespace tunerd::device
