#define WGMMA_N BN

#include "device/cluster.cuh"
#include "device/cp_async.cuh"
#include "device/epilogue.cuh"
#include "device/mbarrier.cuh"
#include "device/mma.cuh"
#include "device/pdl.cuh"
#include "device/raster.cuh"
#include "device/splitk.cuh"
#include "device/stmatrix.cuh"
#include "device/tma.cuh"
#include "device/wgmma.cuh"

using namespace tunerd::device;

constexpr int kBk = 64;  // 128 bytes: one swizzle span
constexpr int kCluster = CLUSTER_M * CLUSTER_N;
constexpr int kSplits = SPLITS * CLUSTER_K;       // of a tile's columns of x and w
constexpr int kTeam = PINGPONG ? 1 : CONSUMERS;  // warpgroups that share a tile
constexpr int kMt = BM / (64 * kTeam), kConsumerThreads = CONSUMERS * 128;
constexpr unsigned kBytesA = BM * kBk * 2, kBytesB = BN * kBk * 2, kBytesStage = kBytesA + kBytesB;
constexpr int kCols = BN / CLUSTER_K;                                   // columns that a block stores of its tile
constexpr int kBox = kCols % 64 == 0 ? 64 : kCols % 32 == 0 ? 32 : 16;  // of these a warp stores at a time, of 16 rows
constexpr int kBoxes = kMt * (kCols / kBox);                            // of a warp in a tile
constexpr unsigned kSlots = STORE_BOXES > 0 ? STORE_BOXES : 1;          // buffers of a warp for them; STORE_BOXES 0: stores from registers
constexpr unsigned kBytesBox = 16 * kBox * 2;
static_assert(BM % (64 * kTeam) == 0, "each consumer warpgroup takes a multiple of 64 rows");
static_assert(kBytesB % 1024 == 0, "every stage starts at a multiple of 1024 bytes");
static_assert(!PINGPONG || kSplits == 1, "the two tiles of ping-pong do not share the barrier that split-K uses");
static_assert(CLUSTER_K == 1 || (kCluster == 1 && SPLITS == 1 && BM * BN * 4 <= STAGES * kBytesStage), "a cluster along k is that only, and adds up where the stages were");

// Where the job with this number lies; the blocks of a cluster take neighbouring tiles.
struct Jobs {
  long long tiles_m, tiles_n, steps_all, steps_each;

  __device__ Jobs(long long m, long long n, long long k)
      : tiles_m((m + BM * CLUSTER_M - 1) / (BM * CLUSTER_M)), tiles_n((n + BN * CLUSTER_N - 1) / (BN * CLUSTER_N)), steps_all((k + kBk - 1) / kBk),
        steps_each((steps_all + kSplits - 1) / kSplits) {}
  __device__ long long count() const { return tiles_m * tiles_n * kSplits; }
  __device__ Tile tile(long long job, int rank) const {
    const Tile tile = raster<GROUP_M>(job / kSplits, tiles_m, tiles_n);
    return {tile.row * CLUSTER_M + rank % CLUSTER_M, tile.col * CLUSTER_N + rank / CLUSTER_M};
  }
  __device__ long long first_step(long long job) const { return job % kSplits * steps_each; }
  __device__ int steps(long long job) const {
    const long long left = steps_all - first_step(job);
    return (int)(left < 0 ? 0 : left < steps_each ? left : steps_each);
  }
};

// A place in the ring of stages, and the parity of its barriers.
struct Ring {
  int stage = 0;
  unsigned phase = 0;
  __device__ void advance() {
    if (++stage == STAGES) {
      stage = 0;
      phase ^= 1;
    }
  }
  __device__ void skip(int steps) {
    phase ^= (stage + steps) / STAGES & 1;
    stage = (stage + steps) % STAGES;
  }
};

// Finished tiles leave by boxes of 16 rows, each warp's own: no warp waits for another. The boxes' buffers are filled with the residual
// ahead of time, before the products of the tile begin.
struct Store {
  const TensorMap& map_y;
  const TensorMap* map_residual;
  const element_t* bias;
  long long n;
  unsigned buffers, barriers;  // of this warp: kSlots boxes, as many barriers
  int lane;
  unsigned done = 0;  // boxes so far, over all tiles

  static __device__ int box_row(int box) { return box / (kCols / kBox) * 64; }
  static __device__ int box_col(int box) { return box % (kCols / kBox) * kBox; }

  __device__ void load_residual(int box, unsigned number, int row, int col) const {
    const unsigned slot = number % kSlots;
    mbarrier_arrive_expect(barriers + slot * 8, kBytesBox);
    tma_load_2d(buffers + slot * kBytesBox, *map_residual, barriers + slot * 8, col + box_col(box), row + box_row(box));
  }
  // Before a tile: `row`, `col` are those of the warp's first box.
  __device__ void begin(int row, int col) const {
    if constexpr (HAS_RESIDUAL) {
      if (lane == 0) {
        tma_store_wait<0>();
#pragma unroll
        for (int box = 0; box < kBoxes && box < (int)kSlots; ++box) load_residual(box, done + box, row, col);
      }
    }
  }
  __device__ void tile(const float (&acc)[kMt][kCols / 2], int row, int col) {
#pragma unroll
    for (int box = 0; box < kBoxes; ++box) {
      const unsigned slot = (done + box) % kSlots, at = buffers + slot * kBytesBox;
      if constexpr (HAS_RESIDUAL) {
        mbarrier_wait(barriers + slot * 8, (done + box) / kSlots & 1);
      } else {
        if (lane == 0) tma_store_wait<kSlots - 1>();
        __syncwarp();
      }
#pragma unroll
      for (int j = 0; j < kBox / 16; ++j) {
        constexpr int kChunks = kBox / 8, kRowsALine = 8 / kChunks;
        const int r = lane % 16, chunk = j * 2 + lane / 16;
        const unsigned address = at + (unsigned)(r * kChunks + (chunk ^ (r / kRowsALine % kChunks))) * 16u;
        unsigned old[4] = {}, out[4];
        if constexpr (HAS_RESIDUAL) ldmatrix_x4(old, address);
        const float* values = acc[box / (kCols / kBox)] + (box_col(box) / 8 + j * 2) * 4;
#pragma unroll
        for (int q = 0; q < 4; ++q) {  // rows r and r + 8 of eight columns, then of the next eight
          const long long c = col + box_col(box) + j * 16 + q / 2 * 8 + lane % 4 * 2;
          float2 b = {0.0f, 0.0f};
          if constexpr (HAS_BIAS) {
            if (c < n) b = unpack2(__ldg(reinterpret_cast<const unsigned*>(bias + c)), element_t{});
          }
          const float2 residual = unpack2(old[q], element_t{});
          out[q] = pack2(finish(values[q * 2], b.x, residual.x), finish(values[q * 2 + 1], b.y, residual.y), element_t{});
        }
        stmatrix_x4(address, out);
      }
      tma_store_fence();
      __syncwarp();
      if (lane == 0) {
        tma_store_2d(map_y, at, col + box_col(box), row + box_row(box));
        tma_store_commit();
        if constexpr (HAS_RESIDUAL) {
          if (box >= 1 && box - 1 + (int)kSlots < kBoxes) {
            tma_store_wait<1>();
            load_residual(box - 1 + (int)kSlots, done + box - 1 + kSlots, row, col);
          }
        }
      }
    }
    done += kBoxes;
  }
};

// The sum over a cluster along k of this thread's accumulators in columns share * kCols and on. All consumer threads call, and the producer's
// meet them at the cluster's barrier.
inline __device__ void add_up(const float (&acc)[kMt][BN / 2], float (&part)[kMt][BN / 2 / CLUSTER_K], unsigned base, int thread, int share) {
  const auto at = [&](int i, int j) { return base + ((i * (BN / 2) + j) * kConsumerThreads + thread) * 4u; };
  asm volatile("bar.sync 1, %0;" ::"n"(kConsumerThreads) : "memory");  // no warp still multiplies from the stages
#pragma unroll
  for (int i = 0; i < kMt; ++i)
#pragma unroll
    for (int j = 0; j < BN / 2; ++j) asm volatile("st.shared.f32 [%0], %1;" ::"r"(at(i, j)), "f"(acc[i][j]) : "memory");
  cluster_arrive(), cluster_wait();
#pragma unroll
  for (int i = 0; i < kMt; ++i)
#pragma unroll
    for (int j = 0; j < kCols / 2; ++j) {
      float sum = 0.0f;
#pragma unroll
      for (int peer = 0; peer < CLUSTER_K; ++peer) sum += load_from_peer(at(i, share * (kCols / 2) + j), peer);
      part[i][j] = sum;
    }
}

// One producer warpgroup feeds STAGES of tiles through the copy engine; CONSUMERS warpgroups multiply: all on one tile, or, with PINGPONG,
// each on its own, so that one stores while another multiplies. Clusters take jobs (tiles, or splits of them) until none is left, and the
// producer runs ahead into the next job while the consumers store. In a cluster of two along m the blocks share w, along n they share x:
// each brings half of what is shared, to both. A cluster along k takes one tile, a share of the columns each, and adds up through the blocks'
// shared memory, each a share of the tile, in the order of the columns: the same bits every time.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
gemm_wgmma(const __grid_constant__ TensorMap map_x, const __grid_constant__ TensorMap map_w,
#if STORE_BOXES > 0 && HAS_RESIDUAL
           const __grid_constant__ TensorMap residual,
#else
           const element_t* residual,
#endif
#if STORE_BOXES > 0
           const __grid_constant__ TensorMap y,
#else
           element_t* y,
#endif
           const element_t* bias, long long m, long long n, long long k, long long ld_residual, long long ld_y, void* workspace) {
  extern __shared__ unsigned char shared[];
  const unsigned base = (shared_address(shared) + 1023u) & ~1023u, boxes = base + STAGES * kBytesStage;
  const unsigned barriers = boxes + CONSUMERS * 4 * STORE_BOXES * kBytesBox, residual_barriers = barriers + STAGES * 16u;
  const auto full = [&](int stage) { return barriers + stage * 16u; };
  const auto empty = [&](int stage) { return barriers + stage * 16u + 8u; };
  if (threadIdx.x == 0) {
    tma_prefetch(map_x);
    tma_prefetch(map_w);
    for (int stage = 0; stage < STAGES; ++stage) {
      mbarrier_init(full(stage), 1);
      mbarrier_init(empty(stage), kTeam * 4 * kCluster);  // one arrival a consumer warp, from every block that is written to
    }
    if constexpr (HAS_RESIDUAL && STORE_BOXES > 0)
      for (int i = 0; i < CONSUMERS * 4 * STORE_BOXES; ++i) mbarrier_init(residual_barriers + i * 8u, 1);
    mbarrier_init_fence();
  }
  __syncthreads();
  if constexpr (kCluster > 1) cluster_arrive(), cluster_wait();
  launch_dependents();
  wait_for_previous();

  const Jobs jobs(m, n, k);
  const int rank = kCluster > 1 ? (int)(blockIdx.x % kCluster) : 0;
  const long long clusters = gridDim.x / kCluster;
  Ring ring;

  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) {
      for (long long job = blockIdx.x / kCluster; job < jobs.count(); job += clusters) {  // exactly one where CLUSTER_K > 1
        const Tile tile = jobs.tile(job, rank);
        const long long first = jobs.first_step(job);
        const int steps = jobs.steps(job);
        for (int step = 0; step < steps; ++step) {
          mbarrier_wait(empty(ring.stage), ring.phase ^ 1);
          mbarrier_arrive_expect(full(ring.stage), kBytesStage);
          const unsigned to_a = base + ring.stage * kBytesStage, to_b = to_a + kBytesA;
          const int at_k = (int)((first + step) * kBk);
          if constexpr (CLUSTER_N > 1)
            tma_multicast_2d(to_a + rank * (kBytesA / 2), map_x, full(ring.stage), at_k, (int)(tile.row * BM) + rank * (BM / 2), 3);
          else
            tma_load_2d(to_a, map_x, full(ring.stage), at_k, (int)(tile.row * BM));
          if constexpr (CLUSTER_M > 1)
            tma_multicast_2d(to_b + rank * (kBytesB / 2), map_w, full(ring.stage), at_k, (int)(tile.col * BN) + rank * (BN / 2), 3);
          else
            tma_load_2d(to_b, map_w, full(ring.stage), at_k, (int)(tile.col * BN));
          ring.advance();
        }
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int thread = threadIdx.x - 128, warp = thread / 32 % 4, lane = thread % 32, group = PINGPONG ? 0 : thread / 128;
    const auto release = [&](int stage) {
      if constexpr (kCluster > 1) {
        if (lane < kCluster) mbarrier_arrive_at(empty(stage), lane);
      } else {
        if (lane == 0) mbarrier_arrive(empty(stage));
      }
    };
#if STORE_BOXES > 0
#if HAS_RESIDUAL
    const TensorMap* map_residual = &residual;
#else
    const TensorMap* map_residual = nullptr;
#endif
    Store store{y, map_residual, bias, n, boxes + thread / 32 * STORE_BOXES * kBytesBox, residual_barriers + thread / 32 * STORE_BOXES * 8u, lane};
#endif
    long long turn = 0;
    for (long long job = blockIdx.x / kCluster; job < jobs.count(); job += clusters, ++turn) {
      const int steps = jobs.steps(job);
      if (PINGPONG && turn % CONSUMERS != thread / 128) {
        ring.skip(steps);
        continue;
      }
      const Tile tile = jobs.tile(job, rank);
      const int share = CLUSTER_K > 1 ? (int)cluster_rank() : 0;
      const long long row = tile.row * BM + group * kMt * 64 + warp * 16, col = tile.col * BN + share * kCols;
#if STORE_BOXES > 0 && SPLITS == 1
      store.begin((int)row, (int)col);
#endif
      float acc[kMt][BN / 2];
      if (steps == 0) {
#pragma unroll
        for (int i = 0; i < kMt; ++i)
#pragma unroll
          for (int j = 0; j < BN / 2; ++j) acc[i][j] = 0.0f;
      }
      // In ping-pong a turn waits until the one before has met all of its stages: parities tell a lap of the ring from the next, not from later ones.
      if constexpr (PINGPONG) {
        if (turn > 0) asm volatile("bar.sync %0, 256;" ::"r"(2 + thread / 128) : "memory");
      }
      int last = 0;
      for (int step = 0; step < steps; ++step) {
        mbarrier_wait(full(ring.stage), ring.phase);
        const unsigned from = base + ring.stage * kBytesStage;
        wgmma_fence();
#pragma unroll
        for (int kk = 0; kk < kBk / 16; ++kk)
#pragma unroll
          for (int i = 0; i < kMt; ++i)
            wgmma(acc[i], wgmma_descriptor(from + (group * kMt + i) * 64 * kBk * 2) + kk * 2, wgmma_descriptor(from + kBytesA) + kk * 2, step > 0 || kk > 0);
        wgmma_commit();
        // The step before this one has been read by now: its stage may be filled again.
        wgmma_wait<1>();
        if (step > 0) release(last);
        last = ring.stage;
        ring.advance();
      }
      if constexpr (PINGPONG) {
        if (job + clusters < jobs.count()) asm volatile("bar.arrive %0, 256;" ::"r"(3 - thread / 128) : "memory");
      }
      wgmma_wait<0>();
#pragma unroll
      for (int i = 0; i < kMt; ++i) wgmma_settle(acc[i]);
      if (steps > 0) release(last);

      if constexpr (SPLITS > 1) {
        const long long index = job / SPLITS * kCluster + rank;
        if (!combine_splits<SPLITS, kConsumerThreads, kMt * BN / 2>(&acc[0][0], workspace, index, (int)(job % SPLITS), thread)) continue;
      }
      float part[kMt][kCols / 2];
      if constexpr (CLUSTER_K > 1)
        add_up(acc, part, base, thread, share);
      else
#pragma unroll
        for (int i = 0; i < kMt; ++i)
#pragma unroll
          for (int j = 0; j < BN / 2; ++j) part[i][j] = acc[i][j];
#if STORE_BOXES > 0
      if constexpr (SPLITS > 1) store.begin((int)row, (int)col);
      store.tile(part, (int)row, (int)col);
#else
      const Epilogue epilogue{bias, residual, y, m, n, ld_residual, ld_y};
#pragma unroll
      for (int i = 0; i < kMt; ++i) {
#pragma unroll
        for (int j = 0; j < kCols / 8; ++j) {
          const long long r = row + i * 64 + lane / 4, c = col + j * 8 + lane % 4 * 2;
          epilogue.store_pair(part[i][j * 4], part[i][j * 4 + 1], r, c);
          epilogue.store_pair(part[i][j * 4 + 2], part[i][j * 4 + 3], r + 8, c);
        }
      }
#endif
    }
    if (STORE_BOXES > 0 && lane == 0) tma_store_wait<0>();  // what they read must outlive them
  }
  // No block leaves while another may still write to its shared memory, read from it or arrive at its barriers.
  if constexpr (CLUSTER_K > 1) {
    if (threadIdx.x < 128) {
      __syncwarp();
      cluster_arrive(), cluster_wait();
    }
  }
  if constexpr (kCluster * CLUSTER_K > 1) {
    __syncwarp();
    cluster_arrive(), cluster_wait();
  }
}
