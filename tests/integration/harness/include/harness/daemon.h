// A tunerd of a test's own: private folder, started, watched, and never left behind.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/client.h"

namespace tunerd::test {

// How a program ended: its exit code, or minus the signal that ended it. Empty while it runs.
using Ended = std::optional<int>;

// tunerd with exactly these words, its output in `log`. Killed with its object.
class Program {
 public:
  Program() = default;
  Program(const std::filesystem::path& binary, const std::vector<std::string>& words,
          const std::map<std::string, std::string>& environment, const std::filesystem::path& log,
          const std::vector<std::pair<int, rlim_t>>& limits = {});
  Program(Program&& other) noexcept { *this = std::move(other); }
  Program& operator=(Program&& other) noexcept;
  ~Program();
  pid_t pid() const { return pid_; }
  void signal(int number) const;
  Ended wait(std::chrono::milliseconds at_most);

 private:
  pid_t pid_ = 0;
  Ended ended_;
};

struct DaemonOptions {
  std::vector<std::string> flags;                  // besides --offline, --socket, --cache and --workers
  std::vector<std::filesystem::path> templates;    // instead of the shipped ones, unless empty
  std::map<std::string, std::string> environment;  // besides what keeps the test's own away
  std::vector<std::pair<int, rlim_t>> limits;      // RLIMIT_… and its value
  std::string offline = "sm_90a";                  // empty: with a measure worker
};

class Daemon {
 public:
  // `home` holds run/tunerd.sock, cache/ and tunerd.log; the same home again is a restart. Throws std::runtime_error
  // with the log when it does not answer in time.
  explicit Daemon(const std::filesystem::path& home, DaemonOptions options = {});
  Daemon(Daemon&&) noexcept = default;

  std::filesystem::path socket() const { return home_ / "run" / "tunerd.sock"; }
  std::filesystem::path cache() const { return home_ / "cache"; }
  pid_t pid() const { return program_.pid(); }
  Program& program() { return program_; }
  Client client() const;  // greeted; throws when refused
  std::string log() const;
  Json status() const;
  // SIGTERM; 0 is what it must end with.
  Ended stop(std::chrono::milliseconds at_most = std::chrono::seconds(20));
  void kill();  // SIGKILL, and waits for it
  std::vector<pid_t> children() const;
  double cpu_seconds() const;
  std::int64_t resident_bytes() const;

  static std::vector<std::string> flags(const std::filesystem::path& home, const DaemonOptions& options);
  static std::map<std::string, std::string> environment(const DaemonOptions& options);
  static std::filesystem::path binary();

 private:
  std::filesystem::path home_;
  Program program_;
};

bool is_running(pid_t pid);

}  // namespace tunerd::test
