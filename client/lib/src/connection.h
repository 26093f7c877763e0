// The socket to the daemon and the one thread that owns it: demultiplexes replies by id, hands pushes on, connects
// again.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "descriptor.h"
#include "model/json_reader.h"

namespace tunerd::client {

struct Reply {
  Json fields;
  Descriptor passed;  // empty when the reply brought none
};

struct ConnectionOptions {
  std::string socket_path;
  std::string client_name;
  int deadline_ms = 5000;  // of a connect with its hello
};

// Connects, says hello and agrees on a version; blocking. Errors: Code::io naming the socket, Code::unsupported naming
// both versions, the daemon's own refusal, Code::corrupt for anything that is not a hello.
Result<Descriptor> connect_and_greet(const ConnectionOptions& options);

// Thread-safe. Callbacks and handlers run on its thread, without any of its locks.
class Connection {
 public:
  using Handler = std::function<void(Result<Reply>)>;
  struct Events {
    std::function<void(const Json& message)> push;  // a message with id 0
    std::function<void()> reconnected;              // after a lost connection was made anew
  };

  // Fails as connect_and_greet does; no thread is left behind then.
  static Result<std::unique_ptr<Connection>> open(ConnectionOptions options, Events events);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { stop(); }
  // Joins the thread; pending handlers get Code::io first. Afterwards every call fails.
  void stop();

  // One request and its reply. Without a connection it makes one attempt to get it back first. Code::deadline when the
  // reply did not come in time; refused on the connection's own thread, which would wait for itself.
  Result<Reply> call(const std::string& type, Json fields, std::chrono::milliseconds deadline);
  // The handler is called exactly once: with the reply, with Code::deadline, or with the reason the connection ended.
  void post(const std::string& type, Json fields, std::chrono::milliseconds deadline, Handler handler);

  bool connected() const { return connected_.load(std::memory_order_acquire); }
  bool on_own_thread() const { return std::this_thread::get_id() == thread_.get_id(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Pending {
    Handler handler;
    Clock::time_point deadline;
  };

  Connection(ConnectionOptions options, Events events, Descriptor socket, Descriptor wake);
  void run();
  void serve_until_lost();
  bool reconnect();  // one attempt
  void pause(std::chrono::milliseconds longest);
  void wake();
  void dispatch(Json message, Descriptor passed);
  void lose(const Error& why);
  void expire();
  int poll_timeout_ms() const;
  Status wait_connected(Clock::time_point deadline);
  Result<std::uint64_t> send(const std::string& type, Json fields, Clock::time_point deadline, Handler handler);

  const ConnectionOptions options_;
  const Events events_;
  Descriptor wake_;
  std::mutex write_mutex_;  // guards the stream's output and socket_ while it is written to
  Descriptor socket_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, Pending> pending_;
  std::uint64_t attempts_ = 0;
  Error last_error_;
  std::atomic<bool> connected_{true};
  std::atomic<bool> closing_{false};
  std::atomic<std::uint64_t> next_id_{2};  // 1 is the hello
  std::thread thread_;
};

}  // namespace tunerd::client
