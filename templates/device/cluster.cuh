// Thread-block clusters: a block's rank, stores into a peer's shared memory, the barrier of all.
// PTX ISA 10 (%cluster_ctarank), 9.7.9.23 (mapa), 9.7.9.11 (st.shared::cluster), 9.7.13.3 (barrier.cluster).
#pragma once

namespace tunerd::device {

inline __device__ unsigned cluster_rank() {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// The address, in block `rank`, of what lies at `pointer` in this block's shared memory.
inline __device__ unsigned peer_address(const void* pointer, unsigned rank) {
  unsigned at;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"((unsigned)__cvta_generic_to_shared(pointer)), "r"(rank));
  return at;
}

inline __device__ void store_to_peer(unsigned at, float value) {
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(at), "f"(value) : "memory");
}
inline __device__ void store_to_peer(unsigned at, float2 value) {
  asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(at), "f"(value.x), "f"(value.y) : "memory");
}

// What lies in block `rank` at the place that `address` names in this block's shared memory.
inline __device__ float load_from_peer(unsigned address, unsigned rank) {
  float value;
  asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %1, %2;\nld.shared::cluster.f32 %0, [remote];\n}" : "=f"(value) : "r"(address), "r"(rank) : "memory");
  return value;
}

// Every thread of every block arrives and then waits, in turn. What was stored before the arrival is seen after the wait.
inline __device__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
inline __device__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
// Says only that this block runs: no block's shared memory may be touched before that.
inline __device__ void cluster_arrive_relaxed() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }

}  // namespace tunerd::device
