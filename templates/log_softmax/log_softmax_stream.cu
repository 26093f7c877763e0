#include "device/pdl.cuh"
#include "device/row_group.cuh"
#include "device/softmax.cuh"
#include "device/softmax_scan.cuh"

using namespace tunerd::device;

// For rows too long for registers: a block a row, read twice.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
log_softmax_stream(const element_t* x, element_t* y, long long rows, long long cols, long long ld_x, long long ld_y) {
  launch_dependents();
  wait_for_previous();
  using Group = RowGroup<float2, THREADS, 1, 1>;
  __shared__ Group::Shared shared;
  Group group(shared);
  constexpr long long kStep = (long long)THREADS * VEC;
  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
    const element_t* in = x + row * ld_x;
    const float2 all = merge_softmax(group, scan_softmax<THREADS, VEC, UNROLL, false>(in, cols, threadIdx.x));
    const float spread = logf(all.y);
#pragma unroll UNROLL
    for (long long c = (long long)threadIdx.x * VEC; c < cols; c += kStep) {
      const auto part = load_vector<element_t, VEC>(in + c);
      Vector<element_t, VEC> out;
#pragma unroll
      for (int v = 0; v < VEC; ++v) out.value[v] = from_float<element_t>(to_float(part.value[v]) - all.x - spread);
      store_vector(y + row * ld_y + c, out);
    }
  }
}
