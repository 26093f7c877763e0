#include "device/reduce.cuh"
#include "device/row.cuh"

using namespace tunerd::device;

// Mean, then squares of what is centred, both over registers: a large offset costs no accuracy.
extern "C" __global__ void __launch_bounds__(TPR * RPB, 1)
layernorm_rows(const element_t* x, const element_t* weight, const element_t* bias, element_t* y, long long rows, long long cols, long long ld_x,
               long long ld_y, float eps) {
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
      for (int v = 0; v < VEC; ++v) sum += tile.value[i][v];
    const float mean = reduce_row<Sum, TPR>(sum, scratch) / (float)cols;
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        tile.value[i][v] -= mean;
        if (tile.column(i, lane) < cols) squares += tile.value[i][v] * tile.value[i][v];
      }
    const float scale = rsqrtf(reduce_row<Sum, TPR>(squares, scratch) / (float)cols + eps);
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      const long long c = tile.column(i, lane);
      if (c < cols) {
        const auto w = load_vector<element_t, VEC>(weight + c);
        const auto b = load_vector<element_t, VEC>(bias + c);
#pragma unroll
        for (int v = 0; v < VEC; ++v) tile.value[i][v] = tile.value[i][v] * scale * to_float(w.value[v]) + to_float(b.value[v]);
      }
    }
    if (row < rows) tile.store(y + row * ld_y, cols, lane);
  }
}
