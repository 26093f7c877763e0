#include "device/pdl.cuh"
#include "device/row.cuh"
#include "device/row_group.cuh"
#include "device/softmax.cuh"

using namespace tunerd::device;

// One read, one exponential an element and one exchange: a warp's exponentials are taken against its own maximum, and what it
// multiplies them with at the end makes that the row's. AHEAD: the next row is loading while this one is reduced.
extern "C" __global__ void __launch_bounds__(TPR * RPB, PER_SM)
softmax_rows(const element_t* x, element_t* y, long long rows, long long cols, long long ld_x, long long ld_y) {
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
    float top = Max::identity(), sum = 0.0f, power[ITEMS][VEC];
    tile.each([&](float value, int, int) { top = fmaxf(top, value); });
    top = reduce_lanes<Max, Group::kLanes>(top);
    const float base = exp_base(top);
    tile.each([&](float value, int item, int v) { sum += power[item][v] = exp_of(value - base); });
    const float2 all = merge_softmax(group, {top, reduce_lanes<Sum, Group::kLanes>(sum)});
    // A row of -inf: this is NaN, as torch has it.
    const float scale = exp_of(top - all.x) / all.y;
    tile.map([&](float, int item, int v) { return power[item][v] * scale; });
    if (row < rows) tile.store(y + row * ld_y, cols, lane);
    if (!more) break;
    if (AHEAD) tile = next;
    else tile.load(x + safe(row + group.step()) * ld_x, cols, lane, Max::identity());
  }
}
