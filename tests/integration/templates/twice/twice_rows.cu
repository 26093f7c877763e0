#ifndef UNROLL
#define UNROLL 1
#endif
#ifdef SIGN_MINUS
#define FACTOR -2.0f
#else
#define FACTOR 2.0f
#endif

extern "C" __global__ void __launch_bounds__(THREADS, 1)
twice_rows(const float* x, float* y, long long rows, long long cols, long long ld_x, long long ld_y) {
  for (long long row = blockIdx.x; row < rows; row += gridDim.x)
    for (long long base = threadIdx.x; base < cols; base += THREADS * UNROLL) {
#pragma unroll
      for (int u = 0; u < UNROLL; ++u)
        if (base + u * THREADS < cols) y[row * ld_y + base + u * THREADS] = FACTOR * x[row * ld_x + base + u * THREADS];
    }
}
