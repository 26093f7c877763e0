// Bulk tensor copies described by a tensor map: loads complete on an mbarrier, stores in groups. PTX ISA 9.7.9.27 (cp.async.bulk.tensor).
#pragma once

namespace tunerd::device {

// The driver's opaque 128-byte descriptor; a __grid_constant__ parameter of the kernel.
struct alignas(128) TensorMap {
  unsigned char opaque[128];
};

inline __device__ void tma_prefetch(const TensorMap& map) { asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory"); }

// Brings the box whose first element is (inner, outer), innermost coordinate first; what lies outside of the tensor arrives as zeros.
inline __device__ void tma_load_2d(unsigned to, const TensorMap& map, unsigned barrier, int inner, int outer) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(to), "l"(&map), "r"(barrier),
               "r"(inner), "r"(outer)
               : "memory");
}

// The same into this place of every block of the cluster whose bit is set in `blocks`; the barrier at this address in each counts the bytes.
inline __device__ void tma_multicast_2d(unsigned to, const TensorMap& map, unsigned barrier, int inner, int outer, unsigned short blocks) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to),
               "l"(&map), "r"(barrier), "r"(inner), "r"(outer), "h"(blocks)
               : "memory");
}

// Writes the box at `from` to the tensor; what lies outside of the tensor is dropped. Fence the writes to `from` first (tma_store_fence).
inline __device__ void tma_store_2d(const TensorMap& map, unsigned from, int inner, int outer) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map), "r"(from), "r"(inner), "r"(outer) : "memory");
}
inline __device__ void tma_store_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
inline __device__ void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Waits until at most PENDING of this thread's groups of stores still read shared memory.
template <int PENDING>
inline __device__ void tma_store_wait() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

}  // namespace tunerd::device
