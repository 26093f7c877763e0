// Four 8x8 matrices of 16-bit elements from registers to shared memory. PTX ISA 9.7.14.5.16 (stmatrix). Lane l holds row l/4, columns 2(l%4)
// and the next, of each matrix; lanes 8i..8i+7 give the row addresses of matrix i.
#pragma once

namespace tunerd::device {

inline __device__ void stmatrix_x4(unsigned address, const unsigned (&from)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3]) : "memory");
}

}  // namespace tunerd::device
