// Shared-memory barriers that count arrivals and bytes. PTX ISA 9.7.13.15 (mbarrier).
#pragma once

namespace tunerd::device {

inline __device__ void mbarrier_init(unsigned barrier, unsigned arrivals) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory"); }
// Makes the initialised barriers visible to the copy engine.
inline __device__ void mbarrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory"); }

inline __device__ void mbarrier_arrive(unsigned barrier) { asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared::cta.b64 state, [%0];\n}" ::"r"(barrier) : "memory"); }
// The same on the barrier at this address in the shared memory of block `rank` of the cluster. Publishes no writes to that block (a release
// at cluster scope costs hundreds of cycles): it says that reading is over.
inline __device__ void mbarrier_arrive_at(unsigned barrier, unsigned rank) {
  asm volatile(
      "{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\nmbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(barrier),
      "r"(rank)
      : "memory");
}
// One arrival, and `bytes` that the copy engine will bring before the phase can end.
inline __device__ void mbarrier_arrive_expect(unsigned barrier, unsigned bytes) {
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n}" ::"r"(barrier), "r"(bytes) : "memory");
}
// Returns once the phase of this parity has ended.
inline __device__ void mbarrier_wait(unsigned barrier, unsigned parity) {
  asm volatile(
      "{\n.reg .pred done;\nWAIT_%=:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra DONE_%=;\nbra WAIT_%=;\nDONE_%=:\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

}  // namespace tunerd::device
