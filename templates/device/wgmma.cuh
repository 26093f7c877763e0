// Warpgroup products: D[64, N] += A[64, 16] · B[N, 16]ᵀ, both operands in shared memory, K contiguous, 128-byte swizzle; accumulators in
// registers. PTX ISA 9.7.15 (asynchronous warpgroup matrix instructions). A source that includes this defines WGMMA_N.
#pragma once

namespace tunerd::device {

// Descriptor of a tile whose rows are 128 bytes: start address, 1024 bytes between groups of eight rows, 128-byte swizzle.
// The tile starts at a multiple of 1024; a K step of 16 elements inside it is 32 bytes on, 2 in the descriptor.
inline __device__ unsigned long long wgmma_descriptor(unsigned address) {
  return (unsigned long long)((address & 0x3ffffu) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);
}

inline __device__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
inline __device__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int PENDING>
inline __device__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// After the last wait: the compiler takes an accumulator as computed when its wgmma is issued, this keeps its uses behind the wait.
template <int COUNT>
inline __device__ void wgmma_settle(float (&d)[COUNT]) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

#if defined(DTYPE_BF16)
#define WGMMA_TYPES "f32.bf16.bf16"
#else
#define WGMMA_TYPES "f32.f16.f16"
#endif

// Eight accumulators from d[i] on, as operands; their numbers, eight to a line.
#define D8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define R0 "%0,%1,%2,%3,%4,%5,%6,%7"
#define R1 "%8,%9,%10,%11,%12,%13,%14,%15"
#define R2 "%16,%17,%18,%19,%20,%21,%22,%23"
#define R3 "%24,%25,%26,%27,%28,%29,%30,%31"
#define R4 "%32,%33,%34,%35,%36,%37,%38,%39"
#define R5 "%40,%41,%42,%43,%44,%45,%46,%47"
#define R6 "%48,%49,%50,%51,%52,%53,%54,%55"
#define R7 "%56,%57,%58,%59,%60,%61,%62,%63"
#define R8 "%64,%65,%66,%67,%68,%69,%70,%71"
#define R9 "%72,%73,%74,%75,%76,%77,%78,%79"
#define R10 "%80,%81,%82,%83,%84,%85,%86,%87"
#define R11 "%88,%89,%90,%91,%92,%93,%94,%95"
#define R12 "%96,%97,%98,%99,%100,%101,%102,%103"
#define R13 "%104,%105,%106,%107,%108,%109,%110,%111"
#define R14 "%112,%113,%114,%115,%116,%117,%118,%119"
#define R15 "%120,%121,%122,%123,%124,%125,%126,%127"
#define WGMMA(SHAPE, REGISTERS, A, B, SCALE)                                                                            \
  "{\n.reg .pred p;\nsetp.ne.b32 p, " SCALE ", 0;\nwgmma.mma_async.sync.aligned." SHAPE "." WGMMA_TYPES " {" REGISTERS "}, " A \
  ", " B ", p, 1, 1, 0, 0;\n}"

// `keep` 0 overwrites the accumulators, 1 adds to them: a run-time predicate, so that no first step has to be peeled.
inline __device__ void wgmma(float (&d)[WGMMA_N / 2], unsigned long long a, unsigned long long b, int keep) {
#if WGMMA_N == 16
  asm volatile(WGMMA("m64n16k16", R0, "%8", "%9", "%10")
               : D8(0) : "l"(a), "l"(b), "r"(keep));
#elif WGMMA_N == 32
  asm volatile(WGMMA("m64n32k16", R0 "," R1, "%16", "%17", "%18")
               : D8(0), D8(8) : "l"(a), "l"(b), "r"(keep));
#elif WGMMA_N == 48
  asm volatile(WGMMA("m64n48k16", R0 "," R1 "," R2, "%24", "%25", "%26")
               : D8(0), D8(8), D8(16) : "l"(a), "l"(b), "r"(keep));
#elif WGMMA_N == 64
  asm volatile(WGMMA("m64n64k16", R0 "," R1 "," R2 "," R3, "%32", "%33", "%34")
               : D8(0), D8(8), D8(16), D8(24) : "l"(a), "l"(b), "r"(keep));
#elif WGMMA_N == 80
  asm volatile(WGMMA("m64n80k16", R0 "," R1 "," R2 "," R3 "," R4, "%40", "%41", "%42")
               : D8(0), D8(8), D8(16), D8(24), D8(32) : "l"(a), "l"(b), "r"(keep));
#elif WGMMA_N == 96
  asm volatile(WGMMA("m64n96k16", R0 "," R1 "," R2 "," R3 "," R4 "," R5, "%48", "%49", "%50")
               : D8(0), D8(8), D8(16), D8(24), D8(32), D8(40) : "l"(a), "l"(b), "r"(keep));
#elif WGMMA_N == 112
  asm volatile(WGMMA("m64n112k16", R0 "," R1 "," R2 "," R3 "," R4 "," R5 "," R6, "%56", "%57", "%58")
               : D8(0), D8(8), D8(16), D8(24), D8(32), D8(40), D8(48) : "l"(a), "l"(b), "r"(keep));
#elif WGMMA_N == 128
  asm volatile(WGMMA("m64n128k16", R0 "," R1 "," R2 "," R3 "," R4 "," R5 "," R6 "," R7, "%64", "%65", "%66")
               : D8(0), D8(8), D8(16), D8(24), D8(32), D8(40), D8(48), D8(56) : "l"(a), "l"(b), "r"(keep));
#elif WGMMA_N == 160
  asm volatile(WGMMA("m64n160k16", R0 "," R1 "," R2 "," R3 "," R4 "," R5 "," R6 "," R7 "," R8 "," R9, "%80", "%81", "%82")
               : D8(0), D8(8), D8(16), D8(24), D8(32), D8(40), D8(48), D8(56), D8(64), D8(72) : "l"(a), "l"(b), "r"(keep));
#elif WGMMA_N == 192
  asm volatile(WGMMA("m64n192k16", R0 "," R1 "," R2 "," R3 "," R4 "," R5 "," R6 "," R7 "," R8 "," R9 "," R10 "," R11, "%96", "%97", "%98")
               : D8(0), D8(8), D8(16), D8(24), D8(32), D8(40), D8(48), D8(56), D8(64), D8(72), D8(80), D8(88) : "l"(a), "l"(b), "r"(keep));
#elif WGMMA_N == 224
  asm volatile(WGMMA("m64n224k16", R0 "," R1 "," R2 "," R3 "," R4 "," R5 "," R6 "," R7 "," R8 "," R9 "," R10 "," R11 "," R12 "," R13, "%112", "%113", "%114")
               : D8(0), D8(8), D8(16), D8(24), D8(32), D8(40), D8(48), D8(56), D8(64), D8(72), D8(80), D8(88), D8(96), D8(104) : "l"(a), "l"(b), "r"(keep));
#elif WGMMA_N == 256
  asm volatile(WGMMA("m64n256k16", R0 "," R1 "," R2 "," R3 "," R4 "," R5 "," R6 "," R7 "," R8 "," R9 "," R10 "," R11 "," R12 "," R13 "," R14 "," R15, "%128", "%129", "%130")
               : D8(0), D8(8), D8(16), D8(24), D8(32), D8(40), D8(48), D8(56), D8(64), D8(72), D8(80), D8(88), D8(96), D8(104), D8(112), D8(120) : "l"(a), "l"(b), "r"(keep));
#else
  static_assert(WGMMA_N == 16, "WGMMA_N is one of 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256");
#endif
}

#undef D8
#undef R0
#undef R1
#undef R2
#undef R3
#undef R4
#undef R5
#undef R6
#undef R7
#undef R8
#undef R9
#undef R10
#undef R11
#undef R12
#undef R13
#undef R14
#undef R15
#undef WGMMA
#undef WGMMA_TYPES

}  // namespace tunerd::device
