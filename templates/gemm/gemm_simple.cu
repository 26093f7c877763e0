#include "device/epilogue.cuh"

using namespace tunerd::device;

constexpr int kBm = 16 * TM, kBn = 16 * TN;

// Plain and always right: element loads, fp32 tiles in shared memory, TM x TN results a thread. No alignment, any size, any stride.
extern "C" __global__ void __launch_bounds__(256, 1)
gemm_simple(const element_t* x, const element_t* w, const element_t* bias, const element_t* residual, element_t* y, long long m, long long n, long long k,
            long long ld_x, long long ld_w, long long ld_residual, long long ld_y) {
  __shared__ float a[BK][kBm + 1], b[BK][kBn + 1];
  const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
  const Epilogue epilogue{bias, residual, y, m, n, ld_residual, ld_y};
  const long long tiles_n = (n + kBn - 1) / kBn, tiles = (m + kBm - 1) / kBm * tiles_n;
  for (long long tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const long long m0 = tile / tiles_n * kBm, n0 = tile % tiles_n * kBn;
    float acc[TM][TN] = {};
    for (long long k0 = 0; k0 < k; k0 += BK) {
      for (int i = threadIdx.x; i < kBm * BK; i += 256) {
        const int r = i / BK, c = i % BK;
        a[c][r] = m0 + r < m && k0 + c < k ? to_float(x[(m0 + r) * ld_x + k0 + c]) : 0.0f;
      }
      for (int i = threadIdx.x; i < kBn * BK; i += 256) {
        const int r = i / BK, c = i % BK;
        b[c][r] = n0 + r < n && k0 + c < k ? to_float(w[(n0 + r) * ld_w + k0 + c]) : 0.0f;
      }
      __syncthreads();
#pragma unroll
      for (int i = 0; i < BK; ++i)
#pragma unroll
        for (int r = 0; r < TM; ++r)
#pragma unroll
          for (int c = 0; c < TN; ++c) acc[r][c] += a[i][ty + 16 * r] * b[i][tx + 16 * c];
      __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < TM; ++r)
#pragma unroll
      for (int c = 0; c < TN; ++c) epilogue.store(acc[r][c], m0 + ty + 16 * r, n0 + tx + 16 * c);
  }
}
