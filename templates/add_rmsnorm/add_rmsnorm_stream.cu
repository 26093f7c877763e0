#include "device/pdl.cuh"
#include "device/reduce.cuh"
#include "device/vector.cuh"
#include "device/convert.cuh"

using namespace tunerd::device;

// A block a row; the second pass reads the sum back from residual_out, which the same threads wrote.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
add_rmsnorm_stream(const element_t* x, const element_t* residual, const element_t* weight, element_t* y, element_t* residual_out, long long rows,
                   long long cols, long long ld_x, long long ld_residual, long long ld_y, long long ld_residual_out, float eps) {
  launch_dependents();
  wait_for_previous();
  __shared__ float scratch[32];
  constexpr long long kStep = (long long)THREADS * VEC;
  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
    float sum = 0.0f;
#pragma unroll UNROLL
    for (long long c = (long long)threadIdx.x * VEC; c < cols; c += kStep) {
      const auto a = load_vector<element_t, VEC>(x + row * ld_x + c);
      const auto b = load_vector<element_t, VEC>(residual + row * ld_residual + c);
      Vector<element_t, VEC> out;
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        out.value[v] = from_float<element_t>(to_float(a.value[v]) + to_float(b.value[v]));
        const float value = to_float(out.value[v]);
        sum += value * value;
      }
      store_vector(residual_out + row * ld_residual_out + c, out);
    }
    sum = reduce_row<Sum, THREADS>(sum, scratch);
    const float scale = rsqrtf(sum / (float)cols + eps);
#pragma unroll UNROLL
    for (long long c = (long long)threadIdx.x * VEC; c < cols; c += kStep) {
      const auto h = load_vector<element_t, VEC>(residual_out + row * ld_residual_out + c);
      const auto w = load_vector<element_t, VEC>(weight + c);
      Vector<element_t, VEC> out;
#pragma unroll
      for (int v = 0; v < VEC; ++v) out.value[v] = from_float<element_t>(to_float(h.value[v]) * scale * to_float(w.value[v]));
      store_vector(y + row * ld_y + c, out);
    }
  }
}
