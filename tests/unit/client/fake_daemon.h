// A daemon of a few lines on a real unix socket, for the client's tests: speaks real frames, passes real memfds, and
// misbehaves when told to.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "model/digest.h"
#include "sample_answer.h"
#include "wire/frame.h"

namespace tunerd {

inline int sealed_memfd(const std::string& bytes,
                        int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) {
  const int fd = ::memfd_create("cubin", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0 || ::write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
      (seals != 0 && ::fcntl(fd, F_ADD_SEALS, seals) != 0))
    throw std::runtime_error("memfd");
  return fd;
}

class FakeDaemon {
 public:
  // Replies to a get; `fd` is passed and closed. The default serves sample_answer() for the dims asked for.
  using Get = std::function<Json(const Json& request, int& fd)>;

  explicit FakeDaemon(std::string path = {}) : path_(std::move(path)) {
    if (path_.empty()) {
      char folder[] = "/tmp/tuner-test-XXXXXX";
      if (::mkdtemp(folder) == nullptr) throw std::runtime_error("mkdtemp");
      path_ = std::string(folder) + "/tunerd.sock";
    }
    get = [this](const Json& request, int& fd) { return serve(request, fd); };
    start();
  }
  ~FakeDaemon() {
    stop();
    std::filesystem::remove_all(std::filesystem::path(path_).parent_path());
  }

  const std::string& path() const { return path_; }
  int gets() const { return gets_; }

  // As when the process dies: every connection ends, the socket refuses.
  void stop() {
    stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    if (acceptor_.joinable()) acceptor_.join();
    ::close(listener_);
    ::unlink(path_.c_str());
    std::vector<std::thread> sessions;
    {
      const std::lock_guard lock(mutex_);
      for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
      sessions.swap(sessions_);
    }
    for (std::thread& session : sessions) session.join();
  }
  void start() {
    stopping_ = false;
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(listener_, 8) != 0)
      throw std::runtime_error("bind");
    acceptor_ = std::thread([this] { accept_all(); });
  }
  void restart() {
    stop();
    start();
  }

  // To every connection.
  void push(const Json& message) {
    const std::lock_guard lock(mutex_);
    for (const int socket : sockets_) (void)wire::send_frame(socket, message, -1, 5000);
  }
  void push_bytes(const std::string& bytes) {
    const std::lock_guard lock(mutex_);
    for (const int socket : sockets_) (void)::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  Json serve(const Json& request, int& fd) {
    wire::GetAnswer answer = sample_answer();
    std::string blob;
    {
      const std::lock_guard lock(mutex_);
      blob = cubin_;
      answer.generation = generation_;
      answer.variant = variant_;
    }
    for (const char* dim : {"m", "n", "k"})
      if (request["fields"].contains(dim)) answer.problem_json["dims"][dim] = request["fields"][dim];
    answer.problem = "gemm" + answer.problem_json["dims"].dump();
    answer.op = request["op"];
    answer.kernel_digest = sha256_hex(blob);
    answer.cubin_bytes = static_cast<std::int64_t>(blob.size());
    fd = sealed_memfd(blob);
    return wire::to_json(answer);
  }
  void upgrade(const std::string& blob, const std::string& variant) {
    const std::lock_guard lock(mutex_);
    cubin_ = blob;
    variant_ = variant;
    ++generation_;
  }

  Get get;
  std::atomic<int> protocol{wire::kProtocolVersion};
  std::atomic<int> subscriptions{0};
  std::function<Json(const Json&)> hello;  // when set, replaces the reply's fields

 private:
  void accept_all() {
    while (!stopping_) {
      const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) continue;
      const std::lock_guard lock(mutex_);
      sockets_.push_back(socket);
      sessions_.emplace_back([this, socket] { serve_session(socket); });
    }
  }
  void serve_session(int socket) {
    while (true) {
      auto request = wire::receive_frame(socket, wire::kMaxRequestBytes, nullptr, -1);
      if (!request) break;
      const std::string type = request->value("type", "");
      const auto id = request->value("id", std::uint64_t{0});
      int fd = -1;
      Json reply;
      if (type == "hello") {
        reply = hello ? hello(*request) : wire::ok_reply(id, {{"protocol", protocol.load()}, {"server", "fake"}});
      } else if (type == "get") {
        ++gets_;
        reply = get(*request, fd);
        if (!reply.contains("ok")) reply = wire::ok_reply(id, reply);
        reply["id"] = id;
      } else if (type == "subscribe") {
        ++subscriptions;
        reply = wire::ok_reply(id, Json::object());
      } else {
        reply = wire::error_reply(id, Error{Code::invalid_argument, "unknown type", "type", type, "a request", {}});
      }
      (void)wire::send_frame(socket, reply, fd, 5000);
      if (fd >= 0) ::close(fd);
    }
    const std::lock_guard lock(mutex_);
    std::erase(sockets_, socket);
    ::close(socket);
  }

  std::string path_;
  int listener_ = -1;
  std::atomic<bool> stopping_{false};
  std::atomic<int> gets_{0};
  std::thread acceptor_;
  std::mutex mutex_;
  std::vector<int> sockets_;
  std::vector<std::thread> sessions_;
  std::string cubin_ =
      "\x7f"
      "ELF first cubin";
  std::string variant_ = "sample_gemm{bm=32,bn=64}";
  std::uint64_t generation_ = 3;
};

// Waits for what another thread brings about; false after ten seconds.
inline bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return condition();
}

}  // namespace tunerd
