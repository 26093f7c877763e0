// Starting, killing and reaping a tuner-worker. No CUDA, no threads: usable from an event loop and from plain tools.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "model/result.h"

namespace tunerd::worker_host {

// A child with one end of a socketpair on its fd 3. It leads its own process group, dies with its parent, and is killed
// (group and all) and reaped when the Process goes. Move-only; an empty one owns nothing.
class Process {
 public:
  Process() = default;
  Process(Process&& other) noexcept { *this = std::move(other); }
  Process& operator=(Process&& other) noexcept;
  ~Process();

  // `path` with `arguments` (argv[1..]). The child's stdin is /dev/null; stdout and stderr stay ours.
  static Result<Process> spawn(const std::filesystem::path& path, const std::vector<std::string>& arguments);

  bool running() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  int socket() const { return socket_; }  // ours to read and write; stays owned by the Process
  int release_socket();                   // hands the descriptor to the caller
  // SIGKILL to the whole group, then reaps. Safe to call twice. "signal 9" | "exit 0" | "" when it never ran.
  std::string kill();
  // Reaps without killing: what it ended with, or empty while it runs.
  std::string try_wait();

 private:
  pid_t pid_ = 0;
  int socket_ = -1;
  std::string ended_;
};

// tuner-worker beside the running executable, or $TUNERD_WORKER.
std::filesystem::path worker_path();

}  // namespace tunerd::worker_host
