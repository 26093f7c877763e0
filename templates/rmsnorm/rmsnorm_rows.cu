#include "device/pdl.cuh"
#include "device/row.cuh"
#include "device/row_group.cuh"

using namespace tunerd::device;

// The row stays in registers between the sum of squares and the scaling: x is read once. The weights, the same for every row, stay
// there too. AHEAD: the next row is loading while this one is reduced.
extern "C" __global__ void __launch_bounds__(TPR * RPB, PER_SM)
rmsnorm_rows(const element_t* x, const element_t* weight, element_t* y, long long rows, long long cols, long long ld_x, long long ld_y, float eps) {
  launch_dependents();
  wait_for_previous();
  using Group = RowGroup<float, TPR, RPB, CLUSTER>;
  __shared__ Group::Shared shared;
  Group group(shared);
  const int lane = group.lane();
  const auto safe = [&](long long row) { return row < rows ? row : rows - 1; };
  RowTile<TPR * CLUSTER, VEC, ITEMS, ONCE> tile, next;
  RowTile<TPR * CLUSTER, VEC, ITEMS> w;
  tile.load(x + safe(group.first() + group.slot()) * ld_x, cols, lane, 0.0f);
  w.load(weight, cols, lane, 0.0f);
  group.join();
  for (long long first = group.first(); first < rows; first += group.step()) {
    const long long row = first + group.slot();
    const bool more = first + group.step() < rows;
    if (AHEAD && more) next.load(x + safe(row + group.step()) * ld_x, cols, lane, 0.0f);
    float sum = 0.0f;
    tile.each([&](float value, int, int) { sum += value * value; });
    tile.keep_packed();
    w.keep_packed();
    const float scale = rsqrtf(group.reduce<Sum>(sum) / (float)cols + eps);
    tile.map([&](float value, int item, int v) { return value * scale * w.get(item, v); });
    if (row < rows) tile.store(y + row * ld_y, cols, lane);
    if (!more) break;
    if (AHEAD) tile = next;
    else tile.load(x + safe(row + group.step()) * ld_x, cols, lane, 0.0f);
  }
}
