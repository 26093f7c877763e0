// Programmatic dependent launch: the next kernel of the stream may start its blocks while the last of this one still run. Every thread calls
// wait_for_previous before it touches global memory: it returns when the kernel before has ended and its writes are seen. For a kernel that
// was launched without the attribute both do nothing. PTX ISA 9.7.13.13 (griddepcontrol).
#pragma once

namespace tunerd::device {

inline __device__ void launch_dependents() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
inline __device__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace tunerd::device
