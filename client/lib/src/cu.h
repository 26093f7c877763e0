// The few driver entry points and types a launch needs, declared here so that neither cuda.h nor libcuda is needed to
// build: the layouts are part of the driver's ABI, and tests/unit/client checks them against cuda.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "model/result.h"

namespace tunerd::client::cu {

using Context = void*;
using Stream = void*;
using Function = void*;
using Module = void*;
using Library = void*;
using Kernel = void*;

struct alignas(128) TensorMap {
  std::uint64_t opaque[16];
};

struct LaunchAttribute {
  int id = 0;
  char pad[4] = {};
  union Value {
    char bytes[64];
    struct {
      unsigned x, y, z;
    } cluster;
    int flag;
  } value{};
};

struct LaunchConfig {
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_bytes = 0;
  Stream stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};

inline constexpr int kAttributeCooperative = 2;
inline constexpr int kAttributeCluster = 4;
inline constexpr int kAttributePdl = 6;
inline constexpr int kMaxDynamicShared = 8;
inline constexpr int kNonPortableCluster = 14;
inline constexpr int kCaptureRelaxed = 2;
inline constexpr int kTypeInt32 = 3, kTypeFp16 = 6, kTypeFp32 = 7, kTypeFp64 = 8, kTypeBf16 = 9;

// Every entry point of libcuda.so.1 that is used; the optional ones may be null.
struct Driver {
  int (*cuCtxGetCurrent)(Context*) = nullptr;
  int (*cuCtxPushCurrent)(Context) = nullptr;
  int (*cuCtxPopCurrent)(Context*) = nullptr;
  int (*cuCtxGetId)(Context, unsigned long long*) = nullptr;  // optional, CUDA 12.0
  int (*cuGetErrorName)(int, const char**) = nullptr;
  int (*cuGetErrorString)(int, const char**) = nullptr;
  int (*cuLibraryLoadData)(Library*, const void*, void*, void**, unsigned, void*, void**,
                           unsigned) = nullptr;                        // optional
  int (*cuLibraryUnload)(Library) = nullptr;                           // optional
  int (*cuLibraryGetKernel)(Kernel*, Library, const char*) = nullptr;  // optional
  int (*cuKernelGetFunction)(Function*, Kernel) = nullptr;             // optional
  int (*cuModuleLoadData)(Module*, const void*) = nullptr;
  int (*cuModuleUnload)(Module) = nullptr;
  int (*cuModuleGetFunction)(Function*, Module, const char*) = nullptr;
  int (*cuFuncSetAttribute)(Function, int, int) = nullptr;
  int (*cuMemAlloc)(std::uint64_t*, std::size_t) = nullptr;
  int (*cuMemFree)(std::uint64_t) = nullptr;
  int (*cuMemsetD8Async)(std::uint64_t, unsigned char, std::size_t, Stream) = nullptr;
  int (*cuStreamIsCapturing)(Stream, int*) = nullptr;
  int (*cuThreadExchangeStreamCaptureMode)(int*) = nullptr;
  int (*cuTensorMapEncodeTiled)(TensorMap*, int type, std::uint32_t rank, void* address, const std::uint64_t* dims,
                                const std::uint64_t* strides, const std::uint32_t* box, const std::uint32_t* steps,
                                int interleave, int swizzle, int l2_promotion, int fill) = nullptr;
  int (*cuLaunchKernelEx)(const LaunchConfig*, Function, void** params, void** extra) = nullptr;

  bool has_libraries() const {
    return cuLibraryLoadData && cuLibraryUnload && cuLibraryGetKernel && cuKernelGetFunction;
  }
  // Code::device with the call's name and the driver's own words.
  Unexpected error(const char* call, int result) const;
};

// Opened once, at the first use. Code::missing "libcuda.so.1 not found", or the entry point an old driver lacks.
Result<const Driver*> driver();

// While it lives, calls of this thread that allocate or load are allowed although a stream is being captured.
class CaptureRelaxed {
 public:
  explicit CaptureRelaxed(const Driver& driver) : driver_(driver) { driver_.cuThreadExchangeStreamCaptureMode(&mode_); }
  CaptureRelaxed(const CaptureRelaxed&) = delete;
  CaptureRelaxed& operator=(const CaptureRelaxed&) = delete;
  ~CaptureRelaxed() { driver_.cuThreadExchangeStreamCaptureMode(&mode_); }

 private:
  const Driver& driver_;
  int mode_ = kCaptureRelaxed;
};

struct CurrentContext {
  Context handle = nullptr;
  unsigned long long id = 0;  // tells a new context from a destroyed one at the same address
  bool operator==(const CurrentContext&) const = default;
};
// Code::device when the calling thread has none.
Result<CurrentContext> current_context(const Driver& driver);

}  // namespace tunerd::client::cu
