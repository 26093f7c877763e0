#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker_support.h"

using namespace tunerd;
using namespace tunerd::test;

namespace {

worker_host::Process shell(const std::string& script) {
  return must(worker_host::Process::spawn("/bin/sh", {"-c", script}));
}

std::string read_line(int fd) {
  std::string line;
  for (char c = 0; ::read(fd, &c, 1) == 1 && c != '\n';) line += c;
  return line;
}

std::string ending(worker_host::Process& process) {
  for (int i = 0; i < 1000; ++i) {
    if (const std::string ended = process.try_wait(); !ended.empty()) return ended;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return "still running";
}

}  // namespace

TEST_CASE("the child has its socket on fd 3, nothing on stdin, and none of our other descriptors") {
  const int ours = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 200);
  REQUIRE(ours >= 200);
  auto process = shell("readlink /proc/$$/fd/0 >&3; ls /proc/$$/fd | tr '\\n' ' ' >&3; echo >&3");
  CHECK(read_line(process.socket()) == "/dev/null");
  const std::string open = read_line(process.socket());
  CHECK(contains(open, "3"));
  CHECK_FALSE(contains(open, std::to_string(ours) + " "));
  ::close(ours);
}

TEST_CASE("kill takes the whole process group, grandchildren too, and reaps") {
  auto process = shell("sleep 1000 & echo $! >&3; wait");
  const auto grandchild = static_cast<pid_t>(std::stol(read_line(process.socket())));
  const pid_t child = process.pid();
  CHECK(is_alive(grandchild));
  CHECK(::getpgid(child) == child);
  CHECK(process.kill() == "signal 9");
  CHECK(dies(grandchild));
  CHECK_FALSE(is_alive(child));
  CHECK(process.kill() == "signal 9");  // again is harmless
  CHECK_FALSE(process.running());
}

TEST_CASE("an ending is told apart: its code, its signal, or not yet") {
  auto code = shell("exit 7");
  CHECK(ending(code) == "exit 7");
  auto signal = shell("kill -TERM $$");
  CHECK(ending(signal) == "signal 15");
  auto going = shell("sleep 1000");
  CHECK(going.try_wait().empty());
  CHECK(going.running());
}

TEST_CASE("what a child that ended left running in its group is killed when it is reaped") {
  auto process = shell("sleep 1000 & echo $! >&3");
  const auto left = static_cast<pid_t>(std::stol(read_line(process.socket())));
  CHECK(ending(process) == "exit 0");
  CHECK(dies(left));
}

TEST_CASE("a Process that goes takes its child with it; one that is moved from owns nothing") {
  pid_t pid = 0;
  {
    auto process = shell("sleep 1000");
    pid = process.pid();
    worker_host::Process other = std::move(process);
    CHECK(other.pid() == pid);
    CHECK(is_alive(pid));
  }
  CHECK_FALSE(is_alive(pid));
  auto first = shell("sleep 1000");
  pid = first.pid();
  first = shell("sleep 1000");  // replacing kills the old one
  CHECK_FALSE(is_alive(pid));
}

TEST_CASE("a child dies with its parent") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t parent = ::fork();
  REQUIRE(parent >= 0);
  if (parent == 0) {
    auto process = worker_host::Process::spawn("/bin/sh", {"-c", "exec sleep 1000"});
    const pid_t pid = process ? process->pid() : 0;
    if (::write(ends[1], &pid, sizeof pid) != sizeof pid) ::_exit(1);
    ::raise(SIGKILL);  // no destructor runs
  }
  pid_t orphan = 0;
  REQUIRE(::read(ends[0], &orphan, sizeof orphan) == sizeof orphan);
  int status = 0;
  ::waitpid(parent, &status, 0);
  REQUIRE(orphan > 0);
  CHECK(dies(orphan));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("a worker that is not there, or cannot be executed, is an error that names the path") {
  for (const char* path : {"/no/such/tuner-worker", "/etc/passwd"}) {
    const Error error = must_fail(worker_host::Process::spawn(path, {}));
    CHECK(error.field == "worker");
    CHECK(error.value == path);
  }
}

TEST_CASE("a released socket stays open when the Process goes") {
  int socket = -1;
  {
    auto process = shell("echo ready >&3; sleep 1000");
    socket = process.release_socket();
    CHECK(read_line(socket) == "ready");
  }
  CHECK(::fcntl(socket, F_GETFD) >= 0);
  CHECK(read_line(socket).empty());  // the other end went with the child
  ::close(socket);
}

TEST_CASE("$TUNERD_WORKER says where the worker is; else it lies beside this program") {
  const char* before = std::getenv("TUNERD_WORKER");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("TUNERD_WORKER", "/opt/tuner-worker", 1);
  CHECK(worker_host::worker_path() == "/opt/tuner-worker");
  ::unsetenv("TUNERD_WORKER");
  CHECK(worker_host::worker_path() == std::filesystem::path(TUNERD_BINARY_DIR) / "tests/tuner-worker");
  if (before != nullptr) ::setenv("TUNERD_WORKER", kept.c_str(), 1);
}
