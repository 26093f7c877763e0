#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <thread>

#include "harness/daemon.h"

extern char** environ;

namespace tunerd::test {
namespace {

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

// The caller's environment without anything that would configure a tunerd, then `added`.
std::vector<std::string> environment_of(const std::map<std::string, std::string>& added) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (text.rfind("TUNERD_", 0) != 0 && text.rfind("SOL_TARGET=", 0) != 0) out.push_back(text);
  }
  for (const auto& [name, value] : added) out.push_back(name + "=" + value);
  return out;
}

}  // namespace

Program::Program(const std::filesystem::path& binary, const std::vector<std::string>& words,
                 const std::map<std::string, std::string>& environment, const std::filesystem::path& log,
                 const std::vector<std::pair<int, rlim_t>>& limits) {
  std::vector<std::string> arguments{binary.string()};
  arguments.insert(arguments.end(), words.begin(), words.end());
  std::vector<std::string> variables = environment_of(environment);
  const std::vector<char*> argv = pointers(arguments), envp = pointers(variables);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork");
  if (pid_ > 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(126);
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (out < 0 || ::dup2(out, STDOUT_FILENO) < 0 || ::dup2(out, STDERR_FILENO) < 0) ::_exit(126);
  for (const auto& [which, value] : limits) {
    const rlimit limit{value, value};
    if (::setrlimit(static_cast<__rlimit_resource>(which), &limit) != 0) ::_exit(126);
  }
  ::execve(argv[0], argv.data(), envp.data());
  ::_exit(127);
}

Program& Program::operator=(Program&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(ended_, other.ended_);
  return *this;
}

Program::~Program() {
  if (pid_ <= 0 || ended_) return;
  ::kill(pid_, SIGKILL);
  wait(std::chrono::seconds(10));
}

void Program::signal(int number) const {
  if (pid_ > 0 && !ended_) ::kill(pid_, number);
}

Ended Program::wait(std::chrono::milliseconds at_most) {
  const auto until = std::chrono::steady_clock::now() + at_most;
  while (!ended_) {
    int status = 0;
    const pid_t got = ::waitpid(pid_, &status, WNOHANG);
    if (got == pid_) {
      ended_ = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    } else if (got < 0 && errno != EINTR) {
      return std::nullopt;
    } else if (std::chrono::steady_clock::now() >= until) {
      return std::nullopt;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  return ended_;
}

}  // namespace tunerd::test
