// Reductions over the THREADS_PER_ROW threads that share a row: a part of a warp, or whole warps of a block that has one row.
#pragma once

namespace tunerd::device {

struct Sum {
  static __device__ float identity() { return 0.0f; }
  static __device__ float apply(float a, float b) { return a + b; }
};
struct Max {
  static __device__ float identity() { return -__int_as_float(0x7f800000); }
  static __device__ float apply(float a, float b) { return fmaxf(a, b); }
};

// Over each kLanes neighbouring lanes of a warp; every one gets the same bits.
template <class Op, int kLanes>
inline __device__ float reduce_lanes(float value) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) value = Op::apply(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

// Every thread of the row gets the result. `scratch` holds kThreads / 32 floats; it may be used again at once (the call synchronises
// before it writes). All threads of the block must call together when kThreads > 32.
template <class Op, int kThreads>
inline __device__ float reduce_row(float value, float* scratch) {
  value = reduce_lanes<Op, kThreads < 32 ? kThreads : 32>(value);
  if constexpr (kThreads > 32) {
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    value = Op::identity();
#pragma unroll
    for (int warp = 0; warp < kThreads / 32; ++warp) value = Op::apply(value, scratch[warp]);
  }
  return value;
}

}  // namespace tunerd::device
