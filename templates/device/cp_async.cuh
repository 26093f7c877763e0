// Asynchronous 16-byte copies from global to shared memory. PTX ISA 9.7.9.25.3 (cp.async, non-bulk).
#pragma once

namespace tunerd::device {

inline __device__ unsigned shared_address(const void* pointer) { return (unsigned)__cvta_generic_to_shared(pointer); }

// Copies 16 bytes, or zeroes them when not `valid` (the source is then not read).
inline __device__ void cp_async_16(unsigned to, const void* from, bool valid) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
inline __device__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most PENDING of this thread's groups are still on their way.
template <int PENDING>
inline __device__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

}  // namespace tunerd::device
