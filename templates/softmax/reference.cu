#include "device/convert.cuh"

using namespace tunerd::device;

// y = exp(x - max) / sum exp(x - max) along each row. A NaN, a +inf or a row of -inf gives a row of NaN, as torch does.
extern "C" __global__ void softmax_reference(const element_t* x, double* y, double* y_err, long long rows, long long cols, long long ld_x) {
  __shared__ double partial[256];
  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
    double top = -__longlong_as_double(0x7ff0000000000000ll);
    for (long long c = threadIdx.x; c < cols; c += blockDim.x) top = fmax(top, to_double(x[row * ld_x + c]));
    partial[threadIdx.x] = top;
    __syncthreads();
    for (int i = 0; i < (int)blockDim.x; ++i) top = fmax(top, partial[i]);
    __syncthreads();
    double sum = 0.0;
    for (long long c = threadIdx.x; c < cols; c += blockDim.x) sum += exp(to_double(x[row * ld_x + c]) - top);
    partial[threadIdx.x] = sum;
    __syncthreads();
    sum = 0.0;
    for (int i = 0; i < (int)blockDim.x; ++i) sum += partial[i];
    __syncthreads();
    for (long long c = threadIdx.x; c < cols; c += blockDim.x) {
      const double below = to_double(x[row * ld_x + c]) - top, out = exp(below) / sum;
      y[row * cols + c] = out;
      // exp turns an absolute error of its argument into a relative one of the result; below 2^-126 fp32 may flush.
      const double relative = 16.0 + 0.5 * sqrt((double)cols) + (isinf(below) ? 0.0 : 4.0 * fabs(below));
      y_err[row * cols + c] = out * relative * 5.9604644775390625e-8 + 1.2e-38;
    }
  }
}
