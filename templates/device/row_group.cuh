// The threads that share a row: a part of a warp, whole warps of a block that has one row, or a cluster of kCluster such blocks.
#pragma once

#include "device/cluster.cuh"
#include "device/reduce.cuh"

namespace tunerd::device {

// kThreads threads of a block have a row, kRows rows a block. `T` is what warps exchange: float or float2.
//
// An exchange pushes: every warp writes its value to every block that shares the row, one barrier, and each block reads its own
// copies. Two buffers alternate, so that one barrier is enough: who writes a buffer anew has passed the barrier of the exchange
// between, to which every reader of the old values came after reading. After the last barrier nobody touches a peer's memory, so
// a block may then end at any time.
template <class T, int kThreads, int kRows, int kCluster>
class RowGroup {
  static_assert(kThreads <= 32 || kRows == 1, "a row of more than a warp has the block to itself");
  static_assert(kCluster == 1 || kThreads > 32, "the blocks of a cluster share one row");
  static constexpr int kWarps = kThreads > 32 ? kThreads / 32 : 1, kValues = kWarps * kCluster;

 public:
  // Of a warp, those that share a row; and those over which the values of a row's warps are spread.
  static constexpr int kLanes = kThreads < 32 ? kThreads : 32, kSpread = kValues < 32 ? kValues : 32;
  static constexpr int kEach = kValues / kSpread;  // a lane has so many
  static constexpr bool kOneWarp = kValues == 1;
  struct Shared {
    T value[2][kValues];
  };

  __device__ explicit RowGroup(Shared& shared) : shared_(shared) {
    if constexpr (kCluster > 1) cluster_arrive_relaxed();
  }
  // Before the first exchange, best after the first loads are on their way.
  __device__ void join() {
    if constexpr (kCluster > 1) cluster_wait();
  }

  static __device__ int lane() { return (kCluster > 1 ? (int)cluster_rank() * kThreads : 0) + threadIdx.x % kThreads; }
  static __device__ int slot() { return threadIdx.x / kThreads; }
  // The block's or cluster's first row, and how far its next ones are.
  static __device__ long long first() { return (long long)(blockIdx.x / kCluster) * kRows; }
  static __device__ long long step() { return (long long)(gridDim.x / kCluster) * kRows; }

  // `value` of every warp, spread over the lanes of each. All threads of the block or cluster must call together.
  __device__ void exchange(T value, T (&got)[kEach]) {
    T* const buffer = shared_.value[turn_];
    turn_ ^= 1;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if constexpr (kCluster > 1) {
      if (lane < kCluster) store_to_peer(peer_address(buffer + cluster_rank() * kWarps + warp, lane), value);
      cluster_arrive();
      cluster_wait();
    } else {
      if (lane == 0) buffer[warp] = value;
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i) got[i] = buffer[i * kSpread + lane % kSpread];
  }

  // Over the row; every thread gets the same bits.
  template <class Op>
  __device__ float reduce(float value) {
    value = reduce_lanes<Op, kLanes>(value);
    if constexpr (!kOneWarp) {
      T got[kEach];
      exchange(value, got);
      value = got[0];
#pragma unroll
      for (int i = 1; i < kEach; ++i) value = Op::apply(value, got[i]);
      value = reduce_lanes<Op, kSpread>(value);
    }
    return value;
  }

 private:
  Shared& shared_;
  int turn_ = 0;
};

}  // namespace tunerd::device
