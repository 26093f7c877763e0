#include "device/convert.cuh"

using namespace tunerd::device;

// A block a row; each thread keeps UNROLL loads in flight.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
relu_rows(const element_t* x, element_t* y, long long rows, long long cols, long long ld_x, long long ld_y) {
  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
    for (long long base = threadIdx.x; base < cols; base += THREADS * UNROLL) {
      element_t value[UNROLL];
#pragma unroll
      for (int u = 0; u < UNROLL; ++u)
        if (base + u * THREADS < cols) value[u] = x[row * ld_x + base + u * THREADS];
#pragma unroll
      for (int u = 0; u < UNROLL; ++u)
        if (base + u * THREADS < cols) y[row * ld_y + base + u * THREADS] = to_float(value[u]) < 0.0f ? from_float<element_t>(0.0f) : value[u];
    }
  }
}
