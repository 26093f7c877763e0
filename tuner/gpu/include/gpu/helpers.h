// The worker's own kernels on a device: filling, comparing, checking. Compiled when the worker starts; everything is
// issued on the device's stream and nothing but verdicts() waits.
#pragma once

#include <memory>

#include "gpu/driver.h"
#include "gpu/nvrtc.h"
#include "model/dtype.h"

namespace tunerd::gpu {

enum class Fill { integers = 0, gaussian = 1, uniform01 = 2, positive = 3, extremes = 4 };

struct Matrix {  // a tensor as rows of a stride; rank 1 is one row
  CUdeviceptr pointer = 0;
  std::int64_t rows = 1, cols = 1, ld = 1;
  DType dtype = DType::bf16;
};

struct Verdict {
  std::uint64_t count = 0;                  // elements (or bytes) that are wrong
  std::uint64_t first = ~std::uint64_t{0};  // the first one's index
};

class Helpers {
 public:
  static Result<Helpers> build(const Device& device, const Compiler& compiler);

  Status fill(const Matrix& matrix, Fill mode, std::uint64_t seed) const;
  Status poison(CUdeviceptr pointer, std::int64_t bytes, std::uint8_t value) const;
  // Dense ref and err (doubles). bitwise: equal to ref rounded once; else |got - ref| <= c * (eps * |ref| + err).
  Status compare(const Matrix& out, CUdeviceptr ref, CUdeviceptr err, bool bitwise, double c, int slot) const;
  Status check_bytes(CUdeviceptr pointer, std::int64_t bytes, std::uint8_t value, int slot) const;
  Status check_padding(const Matrix& matrix, std::uint8_t value, int slot) const;
  Status same_bytes(CUdeviceptr a, CUdeviceptr b, std::int64_t bytes, int slot) const;
  // The slot's count becomes a sum over every byte and its place: equal before and after when nothing was written.
  Status checksum(CUdeviceptr pointer, std::int64_t bytes, int slot) const;
  Status sweep(const Buffer& buffer) const;
  Status empty() const;

  static constexpr int kSlots = 256;
  Status reset_verdicts() const;                  // all slots to nothing wrong
  Result<std::vector<Verdict>> verdicts() const;  // waits for the stream
  // The element's value as a number, for a message. Waits.
  Result<double> element(const Matrix& matrix, std::uint64_t dense_index) const;
  Result<double> element(CUdeviceptr doubles, std::uint64_t index) const;

 private:
  Status launch(CUfunction function, std::int64_t items, std::vector<void*> parameters) const;
  const Device* device_ = nullptr;
  std::shared_ptr<Module> module_;
  std::shared_ptr<Buffer> slots_;
  CUfunction fill_ = nullptr, compare_ = nullptr, check_bytes_ = nullptr, check_padding_ = nullptr,
             same_bytes_ = nullptr, checksum_ = nullptr, sweep_ = nullptr, empty_ = nullptr;
};

}  // namespace tunerd::gpu
