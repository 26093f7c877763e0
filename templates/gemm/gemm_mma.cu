#include "device/cp_async.cuh"
#include "device/epilogue.cuh"
#include "device/mma.cuh"
#include "device/raster.cuh"
#include "device/pdl.cuh"
#include "device/splitk.cuh"

using namespace tunerd::device;

static_assert(BM % WM == 0 && BN % WN == 0, "warp tiles divide the block tile");
static_assert(WM % 16 == 0 && WN % 16 == 0 && BK % 16 == 0 && BK <= 64, "warp tiles are made of 16x16 pieces");
static_assert(STAGES >= 2, "a load must be in flight while one tile is used");

constexpr int kWarpsN = BN / WN, kThreads = BM / WM * kWarpsN * 32;
constexpr int kMt = WM / 16, kNt = WN / 8, kChunks = BK / 8;  // a chunk: 8 elements, 16 bytes
constexpr int kRowsAPass = kThreads / kChunks;                // rows that the block copies at a time
constexpr unsigned kBytesA = BM * BK * 2, kBytesB = BN * BK * 2;
static_assert(kThreads == THREADS, "the manifest launches what is compiled");
static_assert(kThreads % kChunks == 0 && kRowsAPass % 8 == 0, "a thread's chunk keeps its permutation from pass to pass");

// 16-byte chunks of a row are permuted by the row, so that the eight rows of an ldmatrix lie in different banks.
inline __device__ unsigned chunk_offset(int row, int chunk) {
  constexpr int kRowsALine = 8 / kChunks;
  return (unsigned)(row * kChunks + (chunk ^ (row / kRowsALine % kChunks))) * 16u;
}

// This thread's share of a tile: its chunk of every kRowsAPass-th row. One address and one stride, so that addresses cost few registers.
// `rows` are left from its first row on; what lies outside of the tensor becomes zeros.
template <int ROWS>
inline __device__ void load_tile(unsigned to, const element_t* from, const element_t* tensor, long long pass_stride, int rows, bool within_k) {
#pragma unroll
  for (int i = 0; i < (ROWS + kRowsAPass - 1) / kRowsAPass; ++i) {
    if (ROWS % kRowsAPass != 0 && threadIdx.x / kChunks + i * kRowsAPass >= ROWS) break;
    const bool valid = within_k && i * kRowsAPass < rows;
    cp_async_16(to + i * kRowsAPass * BK * 2, valid ? from : tensor, valid);
    from += pass_stride;
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
gemm_mma(const element_t* x, const element_t* w, const element_t* bias, const element_t* residual, element_t* y, long long m, long long n, long long k,
         long long ld_x, long long ld_w, long long ld_residual, long long ld_y, void* workspace) {
  extern __shared__ __align__(128) unsigned char shared[];
  const unsigned smem_a = shared_address(shared), smem_b = smem_a + STAGES * kBytesA;
  const long long tiles_m = (m + BM - 1) / BM, tiles_n = (n + BN - 1) / BN;
  const int split = (int)(blockIdx.x % SPLITS);
  const long long index = blockIdx.x / SPLITS;
  const Tile tile = raster<GROUP_M>(index, tiles_m, tiles_n);
  const long long m0 = tile.row * BM, n0 = tile.col * BN;
  const long long steps_all = (k + BK - 1) / BK, steps_each = (steps_all + SPLITS - 1) / SPLITS, first = split * steps_each;
  const long long left = steps_all - first;
  const int steps = (int)(left < 0 ? 0 : left < steps_each ? left : steps_each);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warp_m = warp / kWarpsN * WM, warp_n = warp % kWarpsN * WN;

  const int row = threadIdx.x / kChunks, chunk = threadIdx.x % kChunks;
  const element_t* from_x = x + (m0 + row) * ld_x + first * BK + chunk * 8;
  const element_t* from_w = w + (n0 + row) * ld_w + first * BK + chunk * 8;
  const int rows_x = (int)min(m - m0 - row, (long long)BM), rows_w = (int)min(n - n0 - row, (long long)BN);
  int chunks_left = (int)(k / 8 - first * kChunks) - chunk;  // k is a multiple of 8: a chunk is all there or not at all
  int to_load = 0, fill = 0;
  const auto load = [&] {
    if (to_load < steps) {
      const unsigned at = chunk_offset(row, chunk);
      load_tile<BM>(smem_a + fill * kBytesA + at, from_x, x, kRowsAPass * ld_x, rows_x, chunks_left > 0);
      load_tile<BN>(smem_b + fill * kBytesB + at, from_w, w, kRowsAPass * ld_w, rows_w, chunks_left > 0);
    }
    cp_async_commit();  // empty at the end: the count of groups stays the same
    from_x += BK;
    from_w += BK;
    chunks_left -= kChunks;
    ++to_load;
    fill = fill + 1 == STAGES ? 0 : fill + 1;
  };

  launch_dependents();
  wait_for_previous();
  float acc[kMt][kNt][4] = {};
#pragma unroll
  for (int i = 0; i < STAGES - 1; ++i) load();
  int stage = 0;
  for (int step = 0; step < steps; ++step) {
    cp_async_wait<STAGES - 2>();
    __syncthreads();  // this stage has arrived for all, and all are done with the one about to be overwritten
    load();
    const unsigned a_base = smem_a + stage * kBytesA, b_base = smem_b + stage * kBytesB;
    stage = stage + 1 == STAGES ? 0 : stage + 1;
#pragma unroll
    for (int kk = 0; kk < BK / 16; ++kk) {
      unsigned a[kMt][4], b[kNt / 2][4];
#pragma unroll
      for (int i = 0; i < kMt; ++i) ldmatrix_x4(a[i], a_base + chunk_offset(warp_m + i * 16 + lane % 16, kk * 2 + lane / 16));
#pragma unroll
      for (int j = 0; j < kNt / 2; ++j) ldmatrix_x4(b[j], b_base + chunk_offset(warp_n + j * 16 + lane / 16 * 8 + lane % 8, kk * 2 + lane / 8 % 2));
#pragma unroll
      for (int i = 0; i < kMt; ++i)
#pragma unroll
        for (int j = 0; j < kNt; ++j) mma_m16n8k16(acc[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1], element_t{});
    }
  }

  if constexpr (SPLITS > 1) {
    if (!combine_splits<SPLITS, kThreads, kMt * kNt * 4>(&acc[0][0][0], workspace, index, split, threadIdx.x)) return;
  }
  const Epilogue epilogue{bias, residual, y, m, n, ld_residual, ld_y};
#pragma unroll
  for (int i = 0; i < kMt; ++i)
#pragma unroll
    for (int j = 0; j < kNt; ++j) {
      const long long y_row = m0 + warp_m + i * 16 + lane / 4, y_col = n0 + warp_n + j * 8 + lane % 4 * 2;
      epilogue.store_pair(acc[i][j][0], acc[i][j][1], y_row, y_col);
      epilogue.store_pair(acc[i][j][2], acc[i][j][3], y_row + 8, y_col);
    }
}
