// Writes to an address nobody mapped: the context is lost.
#include "device/activation.cuh"
#include "device/convert.cuh"

using namespace tunerd::device;

extern "C" __global__ void __launch_bounds__(THREADS, 1)
gelu_illegal(const element_t* x, element_t* y, long long rows, long long cols, long long ld_x, long long ld_y) {
  const long long stride = (long long)gridDim.x * THREADS;
  for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < rows * cols; i += stride) {
    const long long row = i / cols, col = i - row * cols;
    y[(1ll << 46) + row * ld_y + col] = from_float<element_t>(gelu(to_float(x[row * ld_x + col])));
  }
}
