#include "device/reduce.cuh"
#include "device/row.cuh"

using namespace tunerd::device;

extern "C" __global__ void __launch_bounds__(TPR * RPB, 1)
add_rmsnorm_rows(const element_t* x, const element_t* residual, const element_t* weight, element_t* y, element_t* residual_out, long long rows,
                 long long cols, long long ld_x, long long ld_residual, long long ld_y, long long ld_residual_out, float eps) {
  __shared__ float scratch[32];
  const int lane = threadIdx.x % TPR, slot = threadIdx.x / TPR;
  for (long long first = (long long)blockIdx.x * RPB; first < rows; first += (long long)gridDim.x * RPB) {
    const long long row = first + slot, safe = row < rows ? row : rows - 1;
    RowTile<TPR, VEC, ITEMS> tile, other;
    tile.load(x + safe * ld_x, cols, lane, 0.0f);
    other.load(residual + safe * ld_residual, cols, lane, 0.0f);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        // The norm is of what the next layer will read back: the rounded sum.
        tile.value[i][v] = to_float(from_float<element_t>(tile.value[i][v] + other.value[i][v]));
        sum += tile.value[i][v] * tile.value[i][v];
      }
    if (row < rows) tile.store(residual_out + row * ld_residual_out, cols, lane);
    sum = reduce_row<Sum, TPR>(sum, scratch);
    const float scale = rsqrtf(sum / (float)cols + eps);
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      const long long c = tile.column(i, lane);
      if (c < cols) {
        const auto w = load_vector<element_t, VEC>(weight + c);
#pragma unroll
        for (int v = 0; v < VEC; ++v) tile.value[i][v] = tile.value[i][v] * scale * to_float(w.value[v]);
      }
    }
    if (row < rows) tile.store(y + row * ld_y, cols, lane);
  }
}
