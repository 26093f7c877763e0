#include "device/activation.cuh"
#include "device/convert.cuh"
#include "device/pdl.cuh"
#include "device/vector.cuh"

using namespace tunerd::device;

// Blocks tile columns by THREADS·VEC·UNROLL and stride over rows.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
gelu_flat(const element_t* x, element_t* y, long long rows, long long cols, long long ld_x, long long ld_y) {
  launch_dependents();
  wait_for_previous();
  constexpr long long kStep = (long long)THREADS * VEC, kTile = kStep * UNROLL;
  const long long tiles = (cols + kTile - 1) / kTile;
  for (long long job = blockIdx.x; job < rows * tiles; job += gridDim.x) {
    const long long row = job / tiles, base = (job - row * tiles) * kTile + (long long)threadIdx.x * VEC;
    Vector<element_t, VEC> part[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u)
      if (base + u * kStep < cols) part[u] = load_vector<element_t, VEC>(x + row * ld_x + base + u * kStep);
#pragma unroll
    for (int u = 0; u < UNROLL; ++u)
      if (base + u * kStep < cols) {
        Vector<element_t, VEC> out;
#pragma unroll
        for (int v = 0; v < VEC; ++v) out.value[v] = from_float<element_t>(gelu(to_float(part[u].value[v])));
        store_vector(y + row * ld_y + base + u * kStep, out);
      }
  }
}
