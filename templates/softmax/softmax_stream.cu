#include "device/pdl.cuh"
#include "device/reduce.cuh"
#include "device/vector.cuh"
#include "device/convert.cuh"

using namespace tunerd::device;

// A block a row, read twice: maximum and sum online in one pass (the sum is rescaled when the maximum moves), then the result.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
softmax_stream(const element_t* x, element_t* y, long long rows, long long cols, long long ld_x, long long ld_y) {
  launch_dependents();
  wait_for_previous();
  __shared__ float scratch[32];
  constexpr float kLog2e = 1.4426950408889634f;
  constexpr long long kStep = (long long)THREADS * VEC;
  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
    const element_t* in = x + row * ld_x;
    float top = Max::identity(), sum = 0.0f;
#pragma unroll UNROLL
    for (long long c = (long long)threadIdx.x * VEC; c < cols; c += kStep) {
      const auto part = load_vector<element_t, VEC>(in + c);
      float high = top;
#pragma unroll
      for (int v = 0; v < VEC; ++v) high = fmaxf(high, to_float(part.value[v]));
      // While everything seen is -inf the sum is zero, and -inf - -inf would make it NaN.
      const float base = high == Max::identity() ? 0.0f : high;
      sum *= exp2f((top - base) * kLog2e);
#pragma unroll
      for (int v = 0; v < VEC; ++v) sum += exp2f((to_float(part.value[v]) - base) * kLog2e);
      top = high;
    }
    const float highest = reduce_row<Max, THREADS>(top, scratch);
    const float base = top == Max::identity() ? 0.0f : exp2f((top - highest) * kLog2e);
    // A thread that saw only -inf has a zero sum; a NaN sum must stay one.
    sum = top == Max::identity() && sum == 0.0f ? 0.0f : (top == Max::identity() ? sum : sum * base);
    const float scale = 1.0f / reduce_row<Sum, THREADS>(sum, scratch);
#pragma unroll UNROLL
    for (long long c = (long long)threadIdx.x * VEC; c < cols; c += kStep) {
      const auto part = load_vector<element_t, VEC>(in + c);
      Vector<element_t, VEC> out;
#pragma unroll
      for (int v = 0; v < VEC; ++v) out.value[v] = from_float<element_t>(exp2f((to_float(part.value[v]) - highest) * kLog2e) * scale);
      store_vector(y + row * ld_y + c, out);
    }
  }
}
