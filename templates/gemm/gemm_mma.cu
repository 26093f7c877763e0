#include "device/cp_async.cuh"
#include "device/epilogue.cuh"
#include "device/mma.cuh"
#include "device/raster.cuh"
#include "device/splitk.cuh"

using namespace tunerd::device;

static_assert(BM % WM == 0 && BN % WN == 0, "warp tiles divide the block tile");
static_assert(WM % 16 == 0 && WN % 16 == 0 && BK % 16 == 0, "warp tiles are made of 16x16 pieces");
static_assert(STAGES >= 2, "a load must be in flight while one tile is used");

constexpr int kWarpsN = BN / WN, kThreads = BM / WM * kWarpsN * 32;
constexpr int kMt = WM / 16, kNt = WN / 8, kChunks = BK / 8;  // a chunk: 8 elements, 16 bytes
static_assert(kThreads == THREADS, "the manifest launches what is compiled");

// 16-byte chunks of a row are permuted by the row, so that the eight rows of an ldmatrix lie in different banks.
inline __device__ unsigned chunk_offset(int row, int chunk) {
  constexpr int kRowsALine = 8 / kChunks > 0 ? 8 / kChunks : 1;
  return (unsigned)(row * kChunks + (chunk ^ (row / kRowsALine % kChunks))) * 16u;
}

template <int ROWS>
inline __device__ void load_tile(unsigned to, const element_t* from, long long first_row, long long rows, long long ld, long long k0, long long k) {
#pragma unroll
  for (int i = 0; i < (ROWS * kChunks + kThreads - 1) / kThreads; ++i) {
    const int index = i * kThreads + threadIdx.x;
    if (ROWS * kChunks % kThreads != 0 && index >= ROWS * kChunks) break;
    const int row = index / kChunks, chunk = index % kChunks;
    const bool valid = first_row + row < rows && k0 + chunk * 8 < k;  // k is a multiple of 8: a chunk is all there or not at all
    cp_async_16(to + chunk_offset(row, chunk), valid ? from + (first_row + row) * ld + k0 + chunk * 8 : from, valid);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
gemm_mma(const element_t* x, const element_t* w, const element_t* bias, const element_t* residual, element_t* y, long long m, long long n, long long k,
         long long ld_x, long long ld_w, long long ld_residual, long long ld_y, void* workspace) {
  extern __shared__ __align__(128) unsigned char shared[];
  const unsigned smem_a = shared_address(shared), smem_b = smem_a + STAGES * BM * BK * 2;
  const long long tiles_m = (m + BM - 1) / BM, tiles_n = (n + BN - 1) / BN;
  const int split = (int)(blockIdx.x % SPLITS);
  const long long index = blockIdx.x / SPLITS;
  const Tile tile = raster<GROUP_M>(index, tiles_m, tiles_n);
  const long long m0 = tile.row * BM, n0 = tile.col * BN;
  const long long steps_all = (k + BK - 1) / BK, steps_each = (steps_all + SPLITS - 1) / SPLITS, first = split * steps_each;
  const long long left = steps_all - first, steps = left < 0 ? 0 : left < steps_each ? left : steps_each;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warp_m = warp / kWarpsN * WM, warp_n = warp % kWarpsN * WN;

  const auto load = [&](long long step) {
    if (step < steps) {
      const int stage = (int)(step % STAGES);
      const long long k0 = (first + step) * BK;
      load_tile<BM>(smem_a + stage * BM * BK * 2, x, m0, m, ld_x, k0, k);
      load_tile<BN>(smem_b + stage * BN * BK * 2, w, n0, n, ld_w, k0, k);
    }
    cp_async_commit();  // empty at the end: the count of groups stays the same
  };

  float acc[kMt][kNt][4] = {};
#pragma unroll
  for (int i = 0; i < STAGES - 1; ++i) load(i);
  for (long long step = 0; step < steps; ++step) {
    cp_async_wait<STAGES - 2>();
    __syncthreads();  // this stage has arrived for all, and all are done with the one about to be overwritten
    load(step + STAGES - 1);
    const int stage = (int)(step % STAGES);
    const unsigned a_base = smem_a + stage * BM * BK * 2, b_base = smem_b + stage * BN * BK * 2;
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
      const long long row = m0 + warp_m + i * 16 + lane / 4, col = n0 + warp_n + j * 8 + lane % 4 * 2;
      epilogue.store_pair(acc[i][j][0], acc[i][j][1], row, col);
      epilogue.store_pair(acc[i][j][2], acc[i][j][3], row + 8, col);
    }
}
