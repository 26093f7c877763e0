// The runtime folder, the lock that decides who serves, and the listening socket.
#pragma once

#include <filesystem>

#include "model/result.h"

namespace tunerd::daemon {

class Runtime {
 public:
  // Makes the socket's folder (0700) when absent, checks it, takes the lock, replaces a stale socket, binds and
  // listens. Errors: path over 107 bytes; a folder of another user, or one that others may write; already running
  // (names the pid); something at the path that is not a socket.
  static Result<Runtime> acquire(const std::filesystem::path& socket);
  Runtime(Runtime&& other) noexcept;
  Runtime& operator=(Runtime&&) = delete;
  ~Runtime();  // removes the socket, then lets the lock go

  int release_listener();  // hands the listening descriptor to the caller

 private:
  Runtime() = default;
  std::filesystem::path socket_;
  int lock_ = -1, listener_ = -1;
};

}  // namespace tunerd::daemon
