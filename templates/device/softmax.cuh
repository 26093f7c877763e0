// A row's maximum and the sum of exponentials beneath it, from one exchange between the row's warps.
#pragma once

#include "device/reduce.cuh"

namespace tunerd::device {

// e to the power of a difference. What fp32 cannot hold as a normal number becomes zero. PTX ISA 9.7.3.21 (ex2).
inline __device__ float exp_of(float difference) {
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(difference * 1.4426950408889634f));
  return out;
}

// What a sum's exponentials are taken against. While every value is -inf that is zero: -inf - -inf would make a NaN of a zero.
inline __device__ float exp_base(float top) { return top == Max::identity() ? 0.0f : top; }

// `x`: a warp's maximum, `y`: its sum of exp_of(value - exp_base(x)), the same in each of the row's lanes. Returns the row's own pair.
// A NaN or a +inf anywhere in the row makes the sum NaN.
template <class Group>
inline __device__ float2 merge_softmax(Group& group, float2 warp) {
  if constexpr (!Group::kOneWarp) {
    float2 got[Group::kEach];
    group.exchange(warp, got);
    float top = got[0].x, sum = 0.0f;
#pragma unroll
    for (int i = 1; i < Group::kEach; ++i) top = fmaxf(top, got[i].x);
    top = reduce_lanes<Max, Group::kSpread>(top);
#pragma unroll
    for (int i = 0; i < Group::kEach; ++i) sum += got[i].y * exp_of(got[i].x - exp_base(top));
    warp = {top, reduce_lanes<Sum, Group::kSpread>(sum)};
  }
  return warp;
}

}  // namespace tunerd::device
