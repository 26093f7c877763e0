// Bytes in a sealed memory file: passed to clients without a copy, unchangeable by anybody.
#pragma once

#include <memory>
#include <string_view>

#include "model/result.h"

namespace tunerd::daemon {

class SealedFile {
 public:
  // Sealed against writing, growing, shrinking and further seals.
  static Result<std::shared_ptr<const SealedFile>> make(std::string_view bytes);
  SealedFile(const SealedFile&) = delete;
  SealedFile& operator=(const SealedFile&) = delete;
  ~SealedFile();
  int fd() const { return fd_; }

 private:
  SealedFile() = default;
  int fd_ = -1;
};

// Everything of a descriptor that a client passed, at most `limit` bytes; the descriptor is closed.
Result<std::string> read_passed_file(int fd, std::int64_t limit_bytes);

}  // namespace tunerd::daemon
