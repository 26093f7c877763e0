#include "device/pdl.cuh"
#include "device/row.cuh"
#include "device/row_group.cuh"

using namespace tunerd::device;

// As rmsnorm_rows, of the sum of two inputs.
extern "C" __global__ void __launch_bounds__(TPR * RPB, PER_SM)
add_rmsnorm_rows(const element_t* x, const element_t* residual, const element_t* weight, element_t* y, element_t* residual_out, long long rows,
                 long long cols, long long ld_x, long long ld_residual, long long ld_y, long long ld_residual_out, float eps) {
  launch_dependents();
  wait_for_previous();
  using Group = RowGroup<float, TPR, RPB, CLUSTER>;
  __shared__ Group::Shared shared;
  Group group(shared);
  const int lane = group.lane();
  RowTile<TPR * CLUSTER, VEC, ITEMS, ONCE> tile, other, next, next_other;
  RowTile<TPR * CLUSTER, VEC, ITEMS> w;
  const auto load = [&](auto& to, auto& to_other, long long row) {
    const long long safe = row < rows ? row : rows - 1;
    to.load(x + safe * ld_x, cols, lane, 0.0f);
    to_other.load(residual + safe * ld_residual, cols, lane, 0.0f);
  };
  load(tile, other, group.first() + group.slot());
  w.load(weight, cols, lane, 0.0f);
  group.join();
  for (long long first = group.first(); first < rows; first += group.step()) {
    const long long row = first + group.slot();
    const bool more = first + group.step() < rows;
    if (AHEAD && more) load(next, next_other, row + group.step());
    // The norm is of what the next layer will read back: the rounded sum.
    tile.map([&](float value, int item, int v) { return value + other.get(item, v); });
    tile.keep_packed();
    if (row < rows) tile.store(residual_out + row * ld_residual_out, cols, lane);
    float sum = 0.0f;
    tile.each([&](float value, int, int) { sum += value * value; });
    tile.keep_packed();
    w.keep_packed();
    const float scale = rsqrtf(group.reduce<Sum>(sum) / (float)cols + eps);
    tile.map([&](float value, int item, int v) { return value * scale * w.get(item, v); });
    if (row < rows) tile.store(y + row * ld_y, cols, lane);
    if (!more) break;
    if (AHEAD) tile = next, other = next_other;
    else load(tile, other, row + group.step());
  }
}
