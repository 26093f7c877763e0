#include "device/pdl.cuh"
#include "device/row.cuh"
#include "device/row_group.cuh"
#include "device/softmax.cuh"

using namespace tunerd::device;

// One read and one exchange; the row stays packed, since the result needs no exponential. AHEAD: the next row is loading while this
// one is reduced.
extern "C" __global__ void __launch_bounds__(TPR * RPB, PER_SM)
log_softmax_rows(const element_t* x, element_t* y, long long rows, long long cols, long long ld_x, long long ld_y) {
  launch_dependents();
  wait_for_previous();
  using Group = RowGroup<float2, TPR, RPB, CLUSTER>;
  __shared__ Group::Shared shared;
  Group group(shared);
  const int lane = group.lane();
  const auto safe = [&](long long row) { return row < rows ? row : rows - 1; };
  RowTile<TPR * CLUSTER, VEC, ITEMS, ONCE> tile, next;
  tile.load(x + safe(group.first() + group.slot()) * ld_x, cols, lane, Max::identity());
  group.join();
  for (long long first = group.first(); first < rows; first += group.step()) {
    const long long row = first + group.slot();
    const bool more = first + group.step() < rows;
    if (AHEAD && more) next.load(x + safe(row + group.step()) * ld_x, cols, lane, Max::identity());
    float top = Max::identity(), sum = 0.0f;
    tile.each([&](float value, int, int) { top = fmaxf(top, value); });
    tile.keep_packed();
    top = reduce_lanes<Max, Group::kLanes>(top);
    const float base = exp_base(top);
    tile.each([&](float value, int, int) { sum += exp_of(value - base); });
    tile.keep_packed();
    const float2 all = merge_softmax(group, {top, reduce_lanes<Sum, Group::kLanes>(sum)});
    // In a row of -inf the difference is NaN, as torch has it.
    const float spread = logf(all.y);
    tile.map([&](float value, int, int) { return value - all.x - spread; });
    if (row < rows) tile.store(y + row * ld_y, cols, lane);
    if (!more) break;
    if (AHEAD) tile = next;
    else tile.load(x + safe(row + group.step()) * ld_x, cols, lane, Max::identity());
  }
}
