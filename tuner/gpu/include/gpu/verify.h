// The correctness gates of docs/measurement.md: a variant that fails one never gets a time.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpu/arguments.h"
#include "gpu/helpers.h"
#include "model/problem.h"
#include "wire/worker.h"

namespace tunerd::gpu {

// A tensor in device memory between two guard bands, its padding poisoned.
class GuardedTensor {
 public:
  static constexpr std::int64_t kGuardBytes = 4096;
  static constexpr std::uint8_t kGuard = 0xA5, kPoison = 0xFF;  // 0xFF... is a NaN in every float type

  // Guards written, payload poisoned.
  static Result<GuardedTensor> make(const Device& device, const Helpers& helpers, const Matrix& shape);
  const Matrix& matrix() const { return matrix_; }
  std::int64_t payload_bytes() const { return payload_bytes_; }
  Status poison(const Helpers& helpers) const;
  // Both guard bands and the padding between rows, into two verdict slots from `slot` on.
  Status check(const Helpers& helpers, int slot) const;

 private:
  Buffer buffer_;
  Matrix matrix_;
  std::int64_t payload_bytes_ = 0;
};

// Rows, columns and stride of a tensor of a problem; rank 1 is one row.
Result<Matrix> matrix_of(const TensorSpec& tensor, const Problem& problem, const Symbols& symbols);

// One problem with drawn inputs and its fp64 reference.
struct Case {
  OpSpec op;
  Problem problem;
  Symbols symbols;
  Fill fill = Fill::gaussian;
  std::map<std::string, GuardedTensor> inputs;
  struct Expected {
    Matrix shape;     // of the output
    Buffer ref, err;  // dense doubles
  };
  std::map<std::string, Expected> outputs;
  std::int64_t bytes = 0;  // of device memory held
  // What no variant may change, with its checksum: the inputs, the reference. The case serves variant after variant.
  struct Sealed {
    std::string what;
    CUdeviceptr pointer = 0;
    std::int64_t bytes = 0;
    std::uint64_t sum = 0;
  };
  std::vector<Sealed> sealed;
};

class Verifier {
 public:
  Verifier(const Device& device, const Helpers& helpers) : device_(device), helpers_(helpers) {}

  // Runs the gates in order and stops at the first that fails. An error is a device failure (is_fatal tells whether the
  // context is lost), a reference that does not load, or too little memory (Code::busy).
  Result<std::vector<wire::GateResult>> run(const wire::MeasureJob& job, const OpSpec& op, const Problem& problem,
                                            CUfunction kernel);
  void forget();  // drops cached cases
  std::int64_t cached_bytes() const { return cached_bytes_; }

 private:
  Result<std::shared_ptr<Case>> prepare(const wire::MeasureJob& job, const OpSpec& op, const Problem& problem,
                                        Fill fill);
  Result<std::shared_ptr<Case>> build(const wire::MeasureJob& job, const OpSpec& op, const Problem& problem, Fill fill);
  Status seal(Case& test);
  // Names what differs from its checksum, or empty.
  Result<std::string> broken_seal(const Case& test);
  Result<wire::GateResult> check(const std::string& gate, const wire::MeasureJob& job, const Case& test,
                                 CUfunction kernel);

  const Device& device_;
  const Helpers& helpers_;
  // Candidates of one problem come in sequence: their inputs and references are kept, the oldest dropped past the
  // budget.
  std::list<std::pair<std::string, std::shared_ptr<Case>>> cases_;
  std::int64_t cached_bytes_ = 0;
  std::map<std::string, std::shared_ptr<Module>> references_;  // by digest
};

}  // namespace tunerd::gpu
