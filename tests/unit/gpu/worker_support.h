// A tuner-worker of one's own, spoken to frame by frame.
#pragma once

#include <signal.h>
#include <sys/socket.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "fixture.h"
#include "wire/frame.h"
#include "worker_host/process.h"

namespace tunerd::test {

inline const std::filesystem::path kWorker = TUNERD_BINARY_DIR "/bin/tuner-worker";
constexpr int kPatienceMs = 60'000;

inline Result<Json> receive(const worker_host::Process& process, int deadline_ms = kPatienceMs) {
  return wire::receive_frame(process.socket(), wire::kMaxReplyBytes, nullptr, deadline_ms);
}

struct Worker {
  worker_host::Process process;
  wire::WorkerHello hello;

  explicit Worker(const std::vector<std::string>& arguments)
      : process(must(worker_host::Process::spawn(kWorker, arguments))) {
    hello = must(wire::worker_hello_from_json(must(receive(process))));
    CHECK(hello.pid == process.pid());
  }
  void send(const Json& message) const { must(wire::send_frame(process.socket(), message, -1, kPatienceMs)); }
  void send_bytes(const std::string& bytes) const {
    REQUIRE(::send(process.socket(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
  }
  wire::CompileResult compile(const wire::CompileJob& job) const {
    send(to_json(job));
    return must(wire::compile_result_from_json(must(receive(process))));
  }
  // What it ended with; fails the test when it goes on.
  std::string end() {
    for (int i = 0; i < kPatienceMs / 10; ++i) {
      if (const std::string ended = process.try_wait(); !ended.empty()) return ended;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    FAIL("the worker did not end");
    return {};
  }
  void close_socket() { ::shutdown(process.socket(), SHUT_RDWR); }
};

// Neither there nor a zombie.
inline bool is_alive(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(stat, line)) return false;
  const auto state = line.rfind(')');
  return state != std::string::npos && state + 2 < line.size() && line[state + 2] != 'Z';
}

inline bool dies(pid_t pid) {
  for (int i = 0; i < 1000; ++i) {
    if (!is_alive(pid)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace tunerd::test
