#include "device/convert.cuh"

using namespace tunerd::device;

// y = x - max - log(sum exp(x - max)) along each row. A NaN, a +inf or a row of -inf gives a row of NaN, as torch does.
extern "C" __global__ void log_softmax_reference(const element_t* x, double* y, double* y_err, long long rows, long long cols, long long ld_x) {
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
    const double spread = log(sum);
    for (long long c = threadIdx.x; c < cols; c += blockDim.x) {
      const double below = to_double(x[row * ld_x + c]) - top;
      y[row * cols + c] = below - spread;
      // The sum's relative error is an absolute one of its logarithm; what is far below the maximum adds little to the sum, on
      // average no more than log(cols) + 1 below.
      const double ulps = 16.0 + 0.5 * sqrt((double)cols) + 4.0 * (log((double)cols) + 1.0) + 2.0 * fabs(spread);
      y_err[row * cols + c] = (ulps + (isinf(below) ? 0.0 : 2.0 * fabs(below))) * 5.9604644775390625e-8;
    }
  }
}
