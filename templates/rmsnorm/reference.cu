#include "device/convert.cuh"

using namespace tunerd::device;

// y = x / sqrt(mean(x²) + eps) · weight. A thread an element, its row's sum anew each time: plain, not fast.
extern "C" __global__ void rmsnorm_reference(const element_t* x, const element_t* weight, double* y, double* y_err, long long rows, long long cols,
                                             long long ld_x, float eps) {
  __shared__ double partial[256];
  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
    double sum = 0.0;
    for (long long c = threadIdx.x; c < cols; c += blockDim.x) {
      const double value = to_double(x[row * ld_x + c]);
      sum += value * value;
    }
    partial[threadIdx.x] = sum;
    __syncthreads();
    sum = 0.0;
    for (int i = 0; i < (int)blockDim.x; ++i) sum += partial[i];
    __syncthreads();
    const double scale = 1.0 / sqrt(sum / (double)cols + (double)eps);
    for (long long c = threadIdx.x; c < cols; c += blockDim.x) {
      const double value = to_double(x[row * ld_x + c]) * scale * to_double(weight[c]);
      y[row * cols + c] = value;
      y_err[row * cols + c] = fabs(value) * (8.0 + 0.5 * sqrt((double)cols)) * 5.9604644775390625e-8;
    }
  }
}
