#include "device/convert.cuh"
#include "device/pdl.cuh"
#include "device/vector.cuh"

using namespace tunerd::device;

// LANES threads a head, THREADS / LANES · UNROLL heads a block: the row's angles are loaded once for all of them. A thread reads both
// halves of what it writes, so the op may be run in place.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
rope_flat(const element_t* x, const element_t* cosines, const element_t* sines, element_t* y, long long rows, long long heads, long long half,
          long long ld_x, long long ld_cos, long long ld_sin, long long ld_y) {
  launch_dependents();
  wait_for_previous();
  static_assert(THREADS % LANES == 0, "whole heads");
  constexpr long long kHeads = THREADS / LANES, kTile = kHeads * UNROLL;
  const long long tiles = (heads + kTile - 1) / kTile;
  for (long long job = blockIdx.x; job < rows * tiles; job += gridDim.x) {
    const long long row = job / tiles, head = (job - row * tiles) * kTile + threadIdx.x / LANES;
    const element_t* in = x + row * ld_x + head * 2 * half;
    element_t* out = y + row * ld_y + head * 2 * half;
    for (long long c = (threadIdx.x % LANES) * VEC; c < half; c += LANES * VEC) {
      Vector<element_t, VEC> first[UNROLL], second[UNROLL];
#pragma unroll
      for (int u = 0; u < UNROLL; ++u)
        if (head + u * kHeads < heads) {
          first[u] = load_vector<element_t, VEC>(in + u * kHeads * 2 * half + c);
          second[u] = load_vector<element_t, VEC>(in + u * kHeads * 2 * half + half + c);
        }
      const auto cosine = load_vector<element_t, VEC>(cosines + row * ld_cos + c);
      const auto sine = load_vector<element_t, VEC>(sines + row * ld_sin + c);
#pragma unroll
      for (int u = 0; u < UNROLL; ++u)
        if (head + u * kHeads < heads) {
          Vector<element_t, VEC> low, high;
#pragma unroll
          for (int v = 0; v < VEC; ++v) {
            const float a = to_float(first[u].value[v]), b = to_float(second[u].value[v]);
            const float turn = to_float(cosine.value[v]), lift = to_float(sine.value[v]);
            low.value[v] = from_float<element_t>(a * turn - b * lift);
            high.value[v] = from_float<element_t>(b * turn + a * lift);
          }
          store_vector(out + u * kHeads * 2 * half + c, low);
          store_vector(out + u * kHeads * 2 * half + half + c, high);
        }
    }
  }
}
