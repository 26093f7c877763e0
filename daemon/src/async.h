// The few coroutine tools that the daemon is made of. Everything runs on one thread, the loop's.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <set>

#include "model/json_reader.h"

namespace tunerd::daemon {

namespace asio = boost::asio;
template <class T>
using Task = asio::awaitable<T>;
using Clock = std::chrono::steady_clock;
using Socket = asio::local::stream_protocol::socket;
inline constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);

// Something that happens once (until reset); any number of coroutines wait for it, each with its own deadline.
class Signal {
 public:
  explicit Signal(asio::any_io_executor executor) : executor_(std::move(executor)) {}
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  void notify();
  void reset() { happened_ = false; }
  bool happened() const { return happened_; }
  Task<bool> wait_until(Clock::time_point deadline);  // whether it has happened

 private:
  asio::any_io_executor executor_;
  bool happened_ = false;
  std::set<asio::steady_timer*> waiting_;
};

// One holder at a time, first come first served.
class Mutex {
 public:
  explicit Mutex(asio::any_io_executor executor) : executor_(std::move(executor)) {}
  Task<void> lock();
  void unlock();

 private:
  asio::any_io_executor executor_;
  bool held_ = false;
  std::list<std::shared_ptr<Signal>> queue_;
};

// Starts a coroutine whose exceptions end here, logged with `what`.
void spawn(asio::io_context& loop, const char* what, std::function<Task<void>()> work);

// Waits until the socket can be read or written; false once the deadline has passed or the socket failed.
Task<bool> ready(Socket& socket, Socket::wait_type what, Clock::time_point deadline);

// Sends what the socket takes at once, with a descriptor (-1: none) at the first byte: how many bytes.
Result<std::size_t> send_now(Socket& socket, std::string_view bytes, int fd_to_pass);

// One frame, as wire/frame.h defines them. Code::deadline after `deadline`, Code::io "closed by peer" at a clean end.
// *fd receives a passed descriptor (-1: none); when fd is null one is closed.
Task<Result<Json>> read_frame(Socket& socket, std::uint32_t max_body_bytes, Clock::time_point first_byte,
                              Clock::duration rest, int* fd);
Task<Status> write_bytes(Socket& socket, const std::string& bytes, int fd_to_pass, Clock::time_point deadline);

}  // namespace tunerd::daemon
