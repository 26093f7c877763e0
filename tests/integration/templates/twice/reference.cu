extern "C" __global__ void twice_reference(const float* x, double* y, double* y_err, long long rows, long long cols, long long ld_x) {
  const long long stride = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < rows * cols; i += stride) {
#ifdef SIGN_MINUS
    y[i] = -2.0 * (double)x[i / cols * ld_x + i % cols];
#else
    y[i] = 2.0 * (double)x[i / cols * ld_x + i % cols];
#endif
    y_err[i] = 0.0;
  }
}
