#include "device/epilogue.cuh"
#include "device/mma.cuh"
#include "device/pdl.cuh"
#include "device/splitk.cuh"
#include "device/vector.cuh"

using namespace tunerd::device;

constexpr int kTokenTiles = TOKENS / 8, kWarps = WARPS_N * WARPS_K, kThreads = kWarps * 32;
constexpr int kRows = 16 * ROW_TILES, kBlockRows = kRows * WARPS_N;  // of w: by a warp, by a block
constexpr int kAcc = ROW_TILES * kTokenTiles * 4, kOutputs = kBlockRows * TOKENS, kEach = (kOutputs + kThreads - 1) / kThreads;
static_assert(kThreads == THREADS, "the manifest launches what is compiled");

// What one lane holds of 64 columns: of each row tile rows l/4 and l/4 + 8, and of each token tile row l/4; of a row, 8 columns from
// 8(l%4) on and 8 more 32 columns later. The tensor cores see these columns in another order, the same one in w and in x.
struct Chunk {
  uint4 w[ROW_TILES][2][2], x[kTokenTiles][2];
};

// A thin x, m up to TOKENS: w streams through registers once, straight from memory, as the tall operand of w · xᵀ; x comes from L1 and L2.
// The warps of a block divide the columns among them (WARPS_K) and add up through shared memory.
extern "C" __global__ void __launch_bounds__(THREADS)
gemm_skinny(const element_t* __restrict__ x, const element_t* __restrict__ w, const element_t* bias, const element_t* residual, element_t* y, long long m,
            long long n, long long k, long long ld_x, long long ld_w, long long ld_residual, long long ld_y, void* workspace) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warp_k = warp % WARPS_K, warp_n = warp / WARPS_K;
  const int split = (int)(blockIdx.x % SPLITS);
  const long long index = blockIdx.x / SPLITS, row0 = index * kBlockRows;
  const long long chunks = (k + 63) / 64, each = (chunks + SPLITS - 1) / SPLITS, begin = split * each;
  const long long end = begin + each < chunks ? begin + each : chunks;

  // Rows past the end are read from the last one: what they give is not stored.
  const element_t* from_w[ROW_TILES][2];
  const element_t* from_x[kTokenTiles];
  const int column = lane % 4 * 8;
#pragma unroll
  for (int i = 0; i < ROW_TILES; ++i)
#pragma unroll
    for (int h = 0; h < 2; ++h) from_w[i][h] = w + min(row0 + warp_n * kRows + i * 16 + h * 8 + lane / 4, n - 1) * ld_w + column;
#pragma unroll
  for (int t = 0; t < kTokenTiles; ++t) from_x[t] = x + min((long long)(t * 8 + lane / 4), m - 1) * ld_x + column;

  const auto load = [&](Chunk& to, long long chunk) {
    const long long at = chunk * 64;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const bool inside = chunk < end && at + half * 32 + column < k;
#pragma unroll
      for (int i = 0; i < ROW_TILES; ++i)
#pragma unroll
        for (int h = 0; h < 2; ++h) to.w[i][h][half] = inside ? load_once_16(from_w[i][h] + at + half * 32) : uint4{};
#pragma unroll
      for (int t = 0; t < kTokenTiles; ++t) to.x[t][half] = inside ? __ldg(reinterpret_cast<const uint4*>(from_x[t] + at + half * 32)) : uint4{};
    }
  };

  launch_dependents();
  wait_for_previous();
  float acc[ROW_TILES][kTokenTiles][4] = {};
  Chunk ring[UNROLL];
  long long next = begin + warp_k;
#pragma unroll
  for (int u = 0; u < UNROLL; ++u, next += WARPS_K) load(ring[u], next);
  for (long long chunk = begin + warp_k; chunk < end; chunk += WARPS_K * UNROLL) {
#pragma unroll
    for (int u = 0; u < UNROLL; ++u, next += WARPS_K) {
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int i = 0; i < ROW_TILES; ++i) {
          const uint4 top = ring[u].w[i][0][half], bottom = ring[u].w[i][1][half];
          const unsigned first[4] = {top.x, bottom.x, top.y, bottom.y}, second[4] = {top.z, bottom.z, top.w, bottom.w};
#pragma unroll
          for (int t = 0; t < kTokenTiles; ++t) {
            const uint4 b = ring[u].x[t][half];
            mma_m16n8k16(acc[i][t], first, b.x, b.y, element_t{});
            mma_m16n8k16(acc[i][t], second, b.z, b.w, element_t{});
          }
        }
      load(ring[u], next);
    }
  }

  __shared__ float sums[WARPS_K][WARPS_N][kAcc][32];
#pragma unroll
  for (int i = 0; i < kAcc; ++i) sums[warp_k][warp_n][i][lane] = acc[i / (kTokenTiles * 4)][i / 4 % kTokenTiles][i % 4];
  __syncthreads();
  float values[kEach];
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int output = e * kThreads + (int)threadIdx.x, row = output % kBlockRows, token = output / kBlockRows;
    values[e] = 0.0f;
    if (kOutputs % kThreads == 0 || output < kOutputs) {
      const int slot = (row % kRows / 16 * kTokenTiles + token / 8) * 4 + row / 8 % 2 * 2 + token % 2, owner = row % 8 * 4 + token % 8 / 2;
#pragma unroll
      for (int part = 0; part < WARPS_K; ++part) values[e] += sums[part][row / kRows][slot][owner];
    }
  }
  if constexpr (SPLITS > 1) {
    if (!combine_splits<SPLITS, kThreads, kEach>(values, workspace, index, split, threadIdx.x)) return;
  }
  const Epilogue epilogue{bias, residual, y, m, n, ld_residual, ld_y};
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int output = e * kThreads + (int)threadIdx.x;
    if (kOutputs % kThreads == 0 || output < kOutputs) epilogue.store(values[e], output / kBlockRows, row0 + output % kBlockRows);
  }
}
