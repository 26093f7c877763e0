// What happens to an fp32 accumulator before it is stored: bias, activation, residual, one rounding.
#pragma once

#include "device/activation.cuh"
#include "device/convert.cuh"

namespace tunerd::device {

// The arithmetic alone; `bias` and `residual` are ignored where the problem has none.
inline __device__ float finish(float value, float bias, float residual) {
#if HAS_BIAS
  value += bias;
#endif
#if defined(EPILOGUE_GELU)
  value = gelu(value);
#elif defined(EPILOGUE_SILU)
  value = silu(value);
#endif
#if HAS_RESIDUAL
  value += residual;
#endif
  return value;
}

struct Epilogue {
  const element_t* bias;      // [n], null when HAS_BIAS is 0
  const element_t* residual;  // [m,n], null when HAS_RESIDUAL is 0
  element_t* y;               // [m,n]
  long long m, n, ld_residual, ld_y;

  __device__ float apply(float value, long long row, long long col) const {
    return finish(value, HAS_BIAS ? to_float(bias[col]) : 0.0f, HAS_RESIDUAL ? to_float(residual[row * ld_residual + col]) : 0.0f);
  }

  __device__ void store(float value, long long row, long long col) const {
    if (row < m && col < n) y[row * ld_y + col] = from_float<element_t>(apply(value, row, col));
  }

  // Two neighbouring columns, `col` even: one 4-byte store where the row allows it.
  __device__ void store_pair(float first, float second, long long row, long long col) const {
    if (row >= m) return;
    if (col + 1 < n && ld_y % 2 == 0) {
      *reinterpret_cast<unsigned*>(y + row * ld_y + col) = pack2(apply(first, row, col), apply(second, row, col + 1), element_t{});
    } else {
      store(first, row, col);
      store(second, row, col + 1);
    }
  }
};

}  // namespace tunerd::device
