#include "device/pdl.cuh"
#include "device/reduce.cuh"
#include "device/vector.cuh"
#include "device/convert.cuh"

using namespace tunerd::device;

// A block a row, read twice. One pass gathers sum and squares around the row's first element, which keeps a large offset out of both.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
layernorm_stream(const element_t* x, const element_t* weight, const element_t* bias, element_t* y, long long rows, long long cols, long long ld_x,
                 long long ld_y, float eps) {
  launch_dependents();
  wait_for_previous();
  __shared__ float scratch[32];
  constexpr long long kStep = (long long)THREADS * VEC;
  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
    const element_t* in = x + row * ld_x;
    const float pivot = to_float(in[0]);
    float sum = 0.0f, squares = 0.0f;
#pragma unroll UNROLL
    for (long long c = (long long)threadIdx.x * VEC; c < cols; c += kStep) {
      const auto part = load_vector<element_t, VEC>(in + c);
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        const float value = to_float(part.value[v]) - pivot;
        sum += value;
        squares += value * value;
      }
    }
    sum = reduce_row<Sum, THREADS>(sum, scratch);
    squares = reduce_row<Sum, THREADS>(squares, scratch);
    const float offset = sum / (float)cols;
    // Written so that a NaN stays one: fmaxf would drop it.
    const float spread = squares / (float)cols - offset * offset, variance = spread < 0.0f ? 0.0f : spread;
    const float mean = pivot + offset, scale = rsqrtf(variance + eps);
#pragma unroll UNROLL
    for (long long c = (long long)threadIdx.x * VEC; c < cols; c += kStep) {
      const auto part = load_vector<element_t, VEC>(in + c);
      const auto w = load_vector<element_t, VEC>(weight + c);
      const auto b = load_vector<element_t, VEC>(bias + c);
      Vector<element_t, VEC> out;
#pragma unroll
      for (int v = 0; v < VEC; ++v) out.value[v] = from_float<element_t>((to_float(part.value[v]) - mean) * scale * to_float(w.value[v]) + to_float(b.value[v]));
      store_vector(y + row * ld_y + c, out);
    }
  }
}
