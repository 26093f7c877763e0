#include "device/convert.cuh"

using namespace tunerd::device;

// y = (x - mean) / sqrt(var + eps) · weight + bias, var the biased one. Two passes in fp64.
extern "C" __global__ void layernorm_reference(const element_t* x, const element_t* weight, const element_t* bias, double* y, double* y_err, long long rows,
                                               long long cols, long long ld_x, float eps) {
  __shared__ double partial[256];
  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
    double sum = 0.0;
    for (long long c = threadIdx.x; c < cols; c += blockDim.x) sum += to_double(x[row * ld_x + c]);
    partial[threadIdx.x] = sum;
    __syncthreads();
    sum = 0.0;
    for (int i = 0; i < (int)blockDim.x; ++i) sum += partial[i];
    __syncthreads();
    const double mean = sum / (double)cols;
    double squares = 0.0;
    for (long long c = threadIdx.x; c < cols; c += blockDim.x) {
      const double centred = to_double(x[row * ld_x + c]) - mean;
      squares += centred * centred;
    }
    partial[threadIdx.x] = squares;
    __syncthreads();
    squares = 0.0;
    for (int i = 0; i < (int)blockDim.x; ++i) squares += partial[i];
    __syncthreads();
    const double scale = 1.0 / sqrt(squares / (double)cols + (double)eps);
    for (long long c = threadIdx.x; c < cols; c += blockDim.x) {
      const double value = to_double(x[row * ld_x + c]), w = to_double(weight[c]), b = to_double(bias[c]);
      const double out = (value - mean) * scale * w + b;
      y[row * cols + c] = out;
      // fp32 loses an ulp of x when it centres, of the row's magnitude in the mean, and of each term after.
      y_err[row * cols + c] = (8.0 + 0.5 * sqrt((double)cols)) * 5.9604644775390625e-8 * (fabs(w) * scale * (fabs(value) + fabs(mean) + sqrt(squares / (double)cols)) + fabs(out) + fabs(b));
    }
  }
}
