#include "device/pdl.cuh"
#include "device/row_group.cuh"
#include "device/softmax_scan.cuh"

using namespace tunerd::device;

// One pass over the row: nothing of it is needed twice but the target's logit.
extern "C" __global__ void __launch_bounds__(TPR * RPB, 1)
cross_entropy_rows(const element_t* x, const int* target, float* loss, long long rows, long long cols, long long ld_x) {
  launch_dependents();
  wait_for_previous();
  using Group = RowGroup<float2, TPR, RPB, 1>;
  __shared__ Group::Shared shared;
  Group group(shared);
  const int lane = group.lane();
  for (long long first = group.first(); first < rows; first += group.step()) {
    const long long row = first + group.slot(), safe = row < rows ? row : rows - 1;
    const element_t* in = x + safe * ld_x;
    const float2 all = merge_softmax(group, scan_softmax<TPR, VEC, UNROLL, ONCE>(in, cols, lane));
    if (lane == 0 && row < rows) {
      const int wanted = target[row];
      loss[row] = wanted >= 0 && wanted < cols ? all.x - to_float(in[wanted]) + logf(all.y) : 0.0f;
    }
  }
}
