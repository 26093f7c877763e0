#include "device/activation.cuh"
#include "device/convert.cuh"

using namespace tunerd::device;

constexpr int kTile = 16;
constexpr double kEps = 5.9604644775390625e-8;  // 2^-24

// A 16x16 tile of y a block, in fp64: products, and the squares whose norms bound an fp32 implementation's error.
extern "C" __global__ void gemm_reference(const element_t* x, const element_t* w, const element_t* bias, const element_t* residual, double* y, double* y_err,
                                          long long m, long long n, long long k, long long ld_x, long long ld_w, long long ld_residual) {
  __shared__ double a[kTile][kTile + 1], b[kTile][kTile + 1];
  const int r = threadIdx.x / kTile, c = threadIdx.x % kTile;
  const long long tiles_n = (n + kTile - 1) / kTile, tiles = (m + kTile - 1) / kTile * tiles_n;
  for (long long tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const long long row = tile / tiles_n * kTile + r, col = tile % tiles_n * kTile + c, w_row = tile % tiles_n * kTile + r;
    double acc = 0.0, norm_a = 0.0, norm_b = 0.0;
    for (long long k0 = 0; k0 < k; k0 += kTile) {
      a[r][c] = row < m && k0 + c < k ? to_double(x[row * ld_x + k0 + c]) : 0.0;
      b[r][c] = w_row < n && k0 + c < k ? to_double(w[w_row * ld_w + k0 + c]) : 0.0;
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kTile; ++i) {
        acc += a[r][i] * b[c][i];
        norm_a += a[r][i] * a[r][i];
        norm_b += b[c][i] * b[c][i];
      }
      __syncthreads();
    }
    if (row >= m || col >= n) continue;
    double value = acc, magnitude = fabs(acc);
    double error = sqrt((double)k) * kEps * sqrt(norm_a * norm_b);
#if HAS_BIAS
    value += to_double(bias[col]);
    magnitude += fabs(to_double(bias[col]));
#endif
#if defined(EPILOGUE_GELU)
    value = gelu(value);
    error *= 1.13;  // the steepest slope of gelu
#elif defined(EPILOGUE_SILU)
    value = silu(value);
    error = error * 1.1 + (4.0 + fabs(acc)) * kEps * fabs(value) + 1e-36;
#endif
#if HAS_RESIDUAL
    value += to_double(residual[row * ld_residual + col]);
    magnitude += fabs(to_double(residual[row * ld_residual + col]));
#endif
    y[row * n + col] = value;
    y_err[row * n + col] = error + 4.0 * kEps * magnitude;
  }
}
