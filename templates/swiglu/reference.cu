#include "device/activation.cuh"
#include "device/convert.cuh"

using namespace tunerd::device;

// y = silu(gate) · up, gate the first half of each row of x [rows, 2·cols], up the second.
extern "C" __global__ void swiglu_reference(const element_t* x, double* y, double* y_err, long long rows, long long cols, long long ld_x) {
  const long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < rows * cols; i += step) {
    const long long row = i / cols, c = i - row * cols;
    const double gate = to_double(x[row * ld_x + c]), up = to_double(x[row * ld_x + cols + c]);
    const double out = silu(gate) * up;
    y[i] = out;
    const double relative = 16.0 + (isinf(gate) ? 0.0 : 4.0 * fabs(gate));
    y_err[i] = (isinf(out) ? 0.0 : fabs(out)) * relative * 5.9604644775390625e-8 + 1e-36 * (1.0 + fabs(up));
  }
}
