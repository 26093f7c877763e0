// Bulk tensor copies described by a tensor map, completing on an mbarrier. PTX ISA 9.7.9.27 (cp.async.bulk.tensor).
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

}  // namespace tunerd::device
