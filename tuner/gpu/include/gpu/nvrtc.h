// Compiling one program with NVRTC, and reading what its log says about resources.
#pragma once

#include <memory>
#include <string>

#include "wire/worker.h"

namespace tunerd::gpu {

// What the log of --ptxas-options=-v says of the entry (its own section, not other functions').
struct Resources {
  std::int64_t registers = 0, spill_bytes = 0, stack_bytes = 0, static_smem_bytes = 0;
  // Why the kernel must not be used though it compiled: spills, or a C75xx line (setmaxnreg dropped, wgmma serialised).
  // Empty otherwise.
  std::string rejected;
};
Resources read_log(const std::string& log, const std::string& entry);

// Not thread-safe; one program at a time. Every program is destroyed, whatever happened.
class Compiler {
 public:
  static Result<Compiler> load();
  Compiler(Compiler&&) noexcept;
  Compiler& operator=(Compiler&&) noexcept;
  ~Compiler();

  const std::string& version() const;  // "13.0"
  // Never fails as a call: a source that does not compile is ok = false with its first error line. A "sm_100" is
  // compiled as it is.
  wire::CompileResult compile(const wire::CompileJob& job) const;

 private:
  struct Impl;
  explicit Compiler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tunerd::gpu
