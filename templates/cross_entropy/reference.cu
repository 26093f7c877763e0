#include "device/convert.cuh"

using namespace tunerd::device;

// loss = max + log(sum exp(x - max)) - x[target] of each row, 0 where the target is no column. A NaN, a +inf or a row of -inf gives NaN.
extern "C" __global__ void cross_entropy_reference(const element_t* x, const int* target, double* loss, double* loss_err, long long rows, long long cols,
                                                   long long ld_x) {
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
    if (threadIdx.x == 0) {
      const long long wanted = target[row];
      const bool counts = wanted >= 0 && wanted < cols;
      const double below = counts ? top - to_double(x[row * ld_x + wanted]) : 0.0, spread = log(sum);
      loss[row] = counts ? below + spread : 0.0;
      // As log_softmax.
      const double ulps = 16.0 + 0.5 * sqrt((double)cols) + 4.0 * (log((double)cols) + 1.0) + 2.0 * fabs(spread);
      loss_err[row] = (ulps + (isinf(below) ? 0.0 : 2.0 * fabs(below))) * 5.9604644775390625e-8;
    }
  }
}
