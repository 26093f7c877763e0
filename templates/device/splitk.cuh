// Split-K with one result: every split leaves its fp32 partial tile in the workspace, the block that arrives last adds them in split order.
// So the sum does not depend on who was last: the same bits every time. Counters stand at the front of the workspace, a fixed room of
// kSplitCounters whatever the problem's size, zero before the first launch and left zero by each: one workspace serves launches of any size in stream order.
#pragma once

namespace tunerd::device {

constexpr long long kSplitCounters = 16384;

// `values` are this thread's accumulators, in the same order in every split. kThreads threads call together and synchronise on named barrier 1.
// Returns true for the last block, whose `values` then hold the whole sum.
template <int kSplits, int kThreads, int kCount>
inline __device__ bool combine_splits(float* values, void* workspace, long long tile, int split, int thread) {
  unsigned* counters = reinterpret_cast<unsigned*>(workspace);
  float* partials = reinterpret_cast<float*>(counters + kSplitCounters) + tile * kSplits * kThreads * kCount;
  float* mine = partials + (long long)split * kThreads * kCount;
#pragma unroll
  for (int i = 0; i < kCount; ++i) __stcg(mine + (long long)i * kThreads + thread, values[i]);
  __threadfence();
  asm volatile("bar.sync 1, %0;" ::"n"(kThreads) : "memory");
  __shared__ unsigned arrived;
  if (thread == 0) arrived = atomicAdd(counters + tile, 1u);
  asm volatile("bar.sync 1, %0;" ::"n"(kThreads) : "memory");
  const bool last = arrived == kSplits - 1;
  if (last) {
    __threadfence();
    if (thread == 0) counters[tile] = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      float sum = __ldcg(partials + (long long)i * kThreads + thread);
#pragma unroll
      for (int s = 1; s < kSplits; ++s) sum += __ldcg(partials + ((long long)s * kCount + i) * kThreads + thread);
      values[i] = sum;
    }
  }
  asm volatile("bar.sync 1, %0;" ::"n"(kThreads) : "memory");  // `arrived` may be written again
  return last;
}

}  // namespace tunerd::device
