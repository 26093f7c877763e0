#include "worker_host/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace tunerd::worker_host {
namespace {

constexpr int kWorkerFd = 3;

std::string ending(int status) {
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  return "exit " + std::to_string(WEXITSTATUS(status));
}

// Only async-signal-safe calls: the parent may have threads.
[[noreturn]] void become_worker(const char* path, char* const* argv, int fd, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(126);  // it died before the signal was armed
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = ::open("/dev/null", O_RDONLY);
  if (null >= 0) ::dup2(null, STDIN_FILENO);
  if (fd == kWorkerFd)
    ::fcntl(fd, F_SETFD, 0);
  else if (::dup2(fd, kWorkerFd) < 0)
    ::_exit(126);
  ::execv(path, argv);
  ::_exit(127);
}

}  // namespace

Process& Process::operator=(Process&& other) noexcept {
  if (this == &other) return *this;
  kill();
  if (socket_ >= 0) ::close(socket_);
  pid_ = std::exchange(other.pid_, 0);
  socket_ = std::exchange(other.socket_, -1);
  ended_ = std::move(other.ended_);
  return *this;
}

Process::~Process() {
  kill();
  if (socket_ >= 0) ::close(socket_);
}

Result<Process> Process::spawn(const std::filesystem::path& path, const std::vector<std::string>& arguments) {
  if (::access(path.c_str(), X_OK) != 0) return bad_input("worker", path.string(), "an executable tuner-worker");
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return fail(Code::io, std::string("Cannot make a socket pair: ") + std::strerror(errno));
  const std::string program = path.string();
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    const std::string why = std::strerror(errno);
    ::close(pair[0]);
    ::close(pair[1]);
    return fail(Code::io, "Cannot start " + program + ": " + why);
  }
  if (pid == 0) become_worker(program.c_str(), argv.data(), pair[1], parent);
  ::close(pair[1]);
  ::setpgid(pid, pid);  // both sides do it, so that it holds whoever runs first
  Process process;
  process.pid_ = pid;
  process.socket_ = pair[0];
  return process;
}

int Process::release_socket() { return std::exchange(socket_, -1); }

std::string Process::kill() {
  if (pid_ <= 0) return ended_;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  ended_ = ending(status);
  pid_ = 0;
  return ended_;
}

std::string Process::try_wait() {
  if (pid_ <= 0) return ended_;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return {};
  ended_ = ending(status);
  ::kill(-pid_, SIGKILL);  // whatever it left behind
  pid_ = 0;
  return ended_;
}

std::filesystem::path worker_path() {
  if (const char* path = std::getenv("TUNERD_WORKER"); path != nullptr && *path != '\0') return path;
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path("tuner-worker") : self.parent_path() / "tuner-worker";
}

}  // namespace tunerd::worker_host
