#include "device/reduce.cuh"
#include "device/row.cuh"

using namespace tunerd::device;

// The row stays in registers between the sum of squares and the scaling: x is read once.
extern "C" __global__ void __launch_bounds__(TPR * RPB, 1)
rmsnorm_rows(const element_t* x, const element_t* weight, element_t* y, long long rows, long long cols, long long ld_x, long long ld_y, float eps) {
  __shared__ float scratch[32];
  const int lane = threadIdx.x % TPR, slot = threadIdx.x / TPR;
  for (long long first = (long long)blockIdx.x * RPB; first < rows; first += (long long)gridDim.x * RPB) {
    const long long row = first + slot;
    RowTile<TPR, VEC, ITEMS> tile;
    tile.load(x + (row < rows ? row : rows - 1) * ld_x, cols, lane, 0.0f);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
#pragma unroll
      for (int v = 0; v < VEC; ++v) sum += tile.value[i][v] * tile.value[i][v];
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
