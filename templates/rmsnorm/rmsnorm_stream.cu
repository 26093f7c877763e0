#include "device/pdl.cuh"
#include "device/reduce.cuh"
#include "device/vector.cuh"
#include "device/convert.cuh"

using namespace tunerd::device;

// For rows too long for registers: a block a row, read twice; the second read finds most of it in L2.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
rmsnorm_stream(const element_t* x, const element_t* weight, element_t* y, long long rows, long long cols, long long ld_x, long long ld_y, float eps) {
  launch_dependents();
  wait_for_previous();
  __shared__ float scratch[32];
  constexpr long long kStep = (long long)THREADS * VEC;
  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
    const element_t* in = x + row * ld_x;
    float sum = 0.0f;
    for (long long base = (long long)threadIdx.x * VEC; base < cols; base += kStep * UNROLL) {
      Vector<element_t, VEC> part[UNROLL];
#pragma unroll
      for (int u = 0; u < UNROLL; ++u)
        if (base + u * kStep < cols) part[u] = load_vector<element_t, VEC>(in + base + u * kStep);
#pragma unroll
      for (int u = 0; u < UNROLL; ++u)
        if (base + u * kStep < cols)
#pragma unroll
          for (int v = 0; v < VEC; ++v) sum += to_float(part[u].value[v]) * to_float(part[u].value[v]);
    }
    sum = reduce_row<Sum, THREADS>(sum, scratch);
    const float scale = rsqrtf(sum / (float)cols + eps);
    for (long long base = (long long)threadIdx.x * VEC; base < cols; base += kStep * UNROLL) {
      Vector<element_t, VEC> part[UNROLL];
#pragma unroll
      for (int u = 0; u < UNROLL; ++u)
        if (base + u * kStep < cols) part[u] = load_vector<element_t, VEC>(in + base + u * kStep);
#pragma unroll
      for (int u = 0; u < UNROLL; ++u) {
        const long long c = base + u * kStep;
        if (c >= cols) continue;
        const auto w = load_vector<element_t, VEC>(weight + c);
        Vector<element_t, VEC> out;
#pragma unroll
        for (int v = 0; v < VEC; ++v) out.value[v] = from_float<element_t>(to_float(part[u].value[v]) * scale * to_float(w.value[v]));
        store_vector(y + row * ld_y + c, out);
      }
    }
  }
}
