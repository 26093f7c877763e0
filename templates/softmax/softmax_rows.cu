#include "device/reduce.cuh"
#include "device/row.cuh"

using namespace tunerd::device;

// One read, everything in registers, exp in base 2.
extern "C" __global__ void __launch_bounds__(TPR * RPB, 1)
softmax_rows(const element_t* x, element_t* y, long long rows, long long cols, long long ld_x, long long ld_y) {
  __shared__ float scratch[32];
  constexpr float kLog2e = 1.4426950408889634f;
  const int lane = threadIdx.x % TPR, slot = threadIdx.x / TPR;
  for (long long first = (long long)blockIdx.x * RPB; first < rows; first += (long long)gridDim.x * RPB) {
    const long long row = first + slot;
    RowTile<TPR, VEC, ITEMS> tile;
    tile.load(x + (row < rows ? row : rows - 1) * ld_x, cols, lane, Max::identity());
    float top = Max::identity();
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
#pragma unroll
      for (int v = 0; v < VEC; ++v) top = fmaxf(top, tile.value[i][v]);
    top = reduce_row<Max, TPR>(top, scratch);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        const float e = exp2f((tile.value[i][v] - top) * kLog2e);
        tile.value[i][v] = e;
        if (tile.column(i, lane) < cols) sum += e;
      }
    const float scale = 1.0f / reduce_row<Sum, TPR>(sum, scratch);
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
#pragma unroll
      for (int v = 0; v < VEC; ++v) tile.value[i][v] *= scale;
    if (row < rows) tile.store(y + row * ld_y, cols, lane);
  }
}
