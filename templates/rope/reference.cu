#include "device/convert.cuh"

using namespace tunerd::device;

// Each head of 2·half elements turned by its row's angles, a thread an element.
extern "C" __global__ void rope_reference(const element_t* x, const element_t* cosines, const element_t* sines, double* y, double* y_err, long long rows,
                                          long long heads, long long half, long long ld_x, long long ld_cos, long long ld_sin) {
  const long long step = (long long)gridDim.x * blockDim.x, cols = 2 * heads * half;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < rows * cols; i += step) {
    const long long row = i / cols, c = i - row * cols, at = c % (2 * half);
    const bool first = at < half;
    const double own = to_double(x[row * ld_x + c]), other = to_double(x[row * ld_x + (first ? c + half : c - half)]);
    const double cosine = to_double(cosines[row * ld_cos + at % half]), sine = to_double(sines[row * ld_sin + at % half]);
    const double kept = own * cosine, turned = first ? -other * sine : other * sine;
    y[i] = kept + turned;
    y_err[i] = 4.0 * (fabs(kept) + fabs(turned)) * 5.9604644775390625e-8 + 1e-37;
  }
}
