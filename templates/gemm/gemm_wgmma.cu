#define WGMMA_N BN

#include "device/cp_async.cuh"
#include "device/epilogue.cuh"
#include "device/mbarrier.cuh"
#include "device/raster.cuh"
#include "device/splitk.cuh"
#include "device/tma.cuh"
#include "device/wgmma.cuh"

using namespace tunerd::device;

constexpr int kBk = 64;  // 128 bytes: one swizzle span
constexpr int kMt = BM / (64 * CONSUMERS), kConsumerThreads = CONSUMERS * 128;
constexpr unsigned kBytesA = BM * kBk * 2, kBytesB = BN * kBk * 2, kBytesStage = kBytesA + kBytesB;
static_assert(BM % (64 * CONSUMERS) == 0, "each consumer warpgroup takes a multiple of 64 rows");
static_assert(kBytesB % 1024 == 0, "every stage starts at a multiple of 1024 bytes");

// One producer warpgroup feeds STAGES of tiles through the copy engine; CONSUMERS warpgroups multiply. Blocks take jobs (a tile, or a split of
// one) until none is left, and the producer runs ahead into the next job while the consumers store.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
gemm_wgmma(const __grid_constant__ TensorMap map_x, const __grid_constant__ TensorMap map_w, const element_t* bias, const element_t* residual, element_t* y,
           long long m, long long n, long long k, long long ld_residual, long long ld_y, void* workspace) {
  extern __shared__ unsigned char shared[];
  const unsigned base = (shared_address(shared) + 1023u) & ~1023u, barriers = base + STAGES * kBytesStage;
  const auto full = [&](int stage) { return barriers + stage * 16u; };
  const auto empty = [&](int stage) { return barriers + stage * 16u + 8u; };
  if (threadIdx.x == 0) {
    tma_prefetch(map_x);
    tma_prefetch(map_w);
    for (int stage = 0; stage < STAGES; ++stage) {
      mbarrier_init(full(stage), 1);
      mbarrier_init(empty(stage), CONSUMERS * 4);  // one arrival a consumer warp
    }
    mbarrier_init_fence();
  }
  __syncthreads();

  const long long tiles_m = (m + BM - 1) / BM, tiles_n = (n + BN - 1) / BN, jobs = tiles_m * tiles_n * SPLITS;
  const long long steps_all = (k + kBk - 1) / kBk, steps_each = (steps_all + SPLITS - 1) / SPLITS;
  const auto steps_of = [&](int split) {
    const long long left = steps_all - split * steps_each;
    return left < 0 ? 0 : left < steps_each ? left : steps_each;
  };
  int stage = 0;
  unsigned phase = 0;
  const auto advance = [&] {
    if (++stage == STAGES) {
      stage = 0;
      phase ^= 1;
    }
  };

  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) {
      for (long long job = blockIdx.x; job < jobs; job += gridDim.x) {
        const int split = (int)(job % SPLITS);
        const Tile tile = raster<GROUP_M>(job / SPLITS, tiles_m, tiles_n);
        const long long steps = steps_of(split), first = split * steps_each;
        for (long long step = 0; step < steps; ++step) {
          mbarrier_wait(empty(stage), phase ^ 1);
          mbarrier_arrive_expect(full(stage), kBytesStage);
          const unsigned to = base + stage * kBytesStage;
          tma_load_2d(to, map_x, full(stage), (int)((first + step) * kBk), (int)(tile.row * BM));
          tma_load_2d(to + kBytesA, map_w, full(stage), (int)((first + step) * kBk), (int)(tile.col * BN));
          advance();
        }
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int thread = threadIdx.x - 128, group = thread / 128, warp = thread / 32 % 4, lane = thread % 32;
    const Epilogue epilogue{bias, residual, y, m, n, ld_residual, ld_y};
    for (long long job = blockIdx.x; job < jobs; job += gridDim.x) {
      const int split = (int)(job % SPLITS);
      const Tile tile = raster<GROUP_M>(job / SPLITS, tiles_m, tiles_n);
      const long long steps = steps_of(split);
      float acc[kMt][BN / 2];
      if (steps == 0) {
#pragma unroll
        for (int i = 0; i < kMt; ++i)
#pragma unroll
          for (int j = 0; j < BN / 2; ++j) acc[i][j] = 0.0f;
      }
      int last = 0;
      for (long long step = 0; step < steps; ++step) {
        mbarrier_wait(full(stage), phase);
        const unsigned from = base + stage * kBytesStage;
        wgmma_fence();
#pragma unroll
        for (int kk = 0; kk < kBk / 16; ++kk)
#pragma unroll
          for (int i = 0; i < kMt; ++i)
            wgmma(acc[i], wgmma_descriptor(from + (group * kMt + i) * 64 * kBk * 2) + kk * 2, wgmma_descriptor(from + kBytesA) + kk * 2, step > 0 || kk > 0);
        wgmma_commit();
        // The step before this one has been read by now: its stage may be filled again.
        wgmma_wait<1>();
        if (step > 0 && lane == 0) mbarrier_arrive(empty(last));
        last = stage;
        advance();
      }
      wgmma_wait<0>();
#pragma unroll
      for (int i = 0; i < kMt; ++i) wgmma_settle(acc[i]);
      if (steps > 0 && lane == 0) mbarrier_arrive(empty(last));

      if constexpr (SPLITS > 1) {
        if (!combine_splits<SPLITS, kConsumerThreads, kMt * BN / 2>(&acc[0][0], workspace, job / SPLITS, split, thread)) continue;
      }
#pragma unroll
      for (int i = 0; i < kMt; ++i) {
        const long long row = tile.row * BM + (group * kMt + i) * 64 + warp * 16 + lane / 4;
#pragma unroll
        for (int j = 0; j < BN / 8; ++j) {
          const long long col = tile.col * BN + j * 8 + lane % 4 * 2;
          epilogue.store_pair(acc[i][j * 4], acc[i][j * 4 + 1], row, col);
          epilogue.store_pair(acc[i][j * 4 + 2], acc[i][j * 4 + 3], row + 8, col);
        }
      }
    }
  }
}
