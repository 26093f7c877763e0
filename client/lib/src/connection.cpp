#include "connection.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <optional>
#include <vector>

#include "wire/frame.h"
#include "wire/messages.h"

namespace tunerd::client {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kFirstPause{100}, kLongestPause{5000};
constexpr int kFrameDeadlineMs = 10'000;  // a daemon that stops within a frame for this long is lost
// Of sending one request: the caller's, within these. A stream that holds half a frame is of no use to anyone, so a
// short deadline alone must not end it.
constexpr milliseconds kLeastSend{1000}, kLongestSend{10'000};

}  // namespace

Connection::Connection(ConnectionOptions options, Events events, Descriptor socket, Descriptor wake)
    : options_(std::move(options)), events_(std::move(events)), wake_(std::move(wake)), socket_(std::move(socket)) {}

Result<std::unique_ptr<Connection>> Connection::open(ConnectionOptions options, Events events) {
  Descriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return fail(Code::io, std::string("eventfd failed: ") + std::strerror(errno));
  TRY_ASSIGN(Descriptor socket, connect_and_greet(options));
  std::unique_ptr<Connection> connection(
      new Connection(std::move(options), std::move(events), std::move(socket), std::move(wake)));
  // The thread starts under the lock, so that it sees its own id in thread_ from its first callback on.
  const std::lock_guard lock(connection->mutex_);
  connection->thread_ = std::thread([raw = connection.get()] { raw->run(); });
  return connection;
}

void Connection::stop() {
  closing_ = true;
  wake();
  if (thread_.joinable()) thread_.join();
}

void Connection::wake() {
  const std::uint64_t one = 1;
  // Fails only when the counter is full, which wakes as well.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void Connection::run() {
  { const std::lock_guard started(mutex_); }
  milliseconds next_pause = kFirstPause;
  while (!closing_) {
    if (connected_) {
      serve_until_lost();
      next_pause = kFirstPause;
    } else {
      pause(next_pause);
      if (closing_) break;
      next_pause = reconnect() ? kFirstPause : std::min(next_pause * 2, kLongestPause);
    }
  }
  lose(Error{Code::io, "the client was closed", {}, {}, {}, {}});
}

void Connection::serve_until_lost() {
  while (!closing_) {
    pollfd entries[2] = {{socket_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    if (::poll(entries, 2, poll_timeout_ms()) < 0 && errno != EINTR)
      return lose(Error{Code::io, std::string("poll failed: ") + std::strerror(errno), {}, {}, {}, {}});
    if (entries[1].revents != 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &count, sizeof count);
    }
    expire();
    if (closing_ || entries[0].revents == 0) continue;
    int fd = -1;
    auto message = wire::receive_frame(socket_.get(), wire::kMaxReplyBytes, &fd, kFrameDeadlineMs);
    Descriptor passed(fd);
    if (!message) return lose(message.error());
    dispatch(std::move(*message), std::move(passed));
  }
}

void Connection::pause(milliseconds longest) {
  pollfd entry{wake_.get(), POLLIN, 0};
  ::poll(&entry, 1, static_cast<int>(longest.count()));
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &count, sizeof count);
}

bool Connection::reconnect() {
  auto socket = connect_and_greet(options_);
  if (socket) {
    const std::lock_guard writing(write_mutex_);
    socket_ = std::move(*socket);
  }
  {
    const std::lock_guard lock(mutex_);
    ++attempts_;
    if (!socket) last_error_ = socket.error();
    connected_ = socket.has_value();
  }
  changed_.notify_all();
  if (socket && events_.reconnected) events_.reconnected();
  return socket.has_value();
}

void Connection::lose(const Error& why) {
  ::shutdown(socket_.get(), SHUT_RDWR);  // wakes a writer that waits for room
  std::map<std::uint64_t, Pending> orphans;
  {
    const std::lock_guard writing(write_mutex_);
    const std::lock_guard lock(mutex_);
    socket_ = Descriptor();
    connected_ = false;
    last_error_ = why;
    orphans.swap(pending_);
  }
  for (auto& [id, pending] : orphans) pending.handler(Unexpected(why));
}

void Connection::expire() {
  std::vector<Handler> late;
  {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    for (auto entry = pending_.begin(); entry != pending_.end();) {
      if (entry->second.deadline > now) {
        ++entry;
        continue;
      }
      late.push_back(std::move(entry->second.handler));
      entry = pending_.erase(entry);
    }
  }
  for (Handler& handler : late) handler(fail(Code::deadline, "tunerd did not answer in time"));
}

int Connection::poll_timeout_ms() const {
  const std::lock_guard lock(mutex_);
  std::optional<Clock::time_point> first;
  for (const auto& [id, pending] : pending_)
    if (!first || pending.deadline < *first) first = pending.deadline;
  if (!first) return -1;
  const auto left = std::chrono::ceil<milliseconds>(*first - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, INT_MAX));
}

void Connection::dispatch(Json message, Descriptor passed) {
  const auto id = message.find("id");
  if (id == message.end() || !id->is_number_unsigned()) return;  // names no request of ours
  const auto number = id->get<std::uint64_t>();
  if (number == 0) {
    if (events_.push) events_.push(message);
    return;
  }
  Handler handler;
  {
    const std::lock_guard lock(mutex_);
    const auto found = pending_.find(number);
    if (found == pending_.end()) return;  // its deadline passed before
    handler = std::move(found->second.handler);
    pending_.erase(found);
  }
  auto fields = wire::unwrap_reply(std::move(message));
  if (!fields) return handler(Unexpected(fields.error()));
  handler(Reply{std::move(*fields), std::move(passed)});
}

Status Connection::wait_connected(Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  if (connected_) return {};
  const std::uint64_t seen = attempts_;
  wake();
  changed_.wait_until(lock, deadline, [&] { return connected_ || attempts_ > seen; });
  if (connected_) return {};
  return Unexpected(last_error_);
}

Result<std::uint64_t> Connection::send(const std::string& type, Json fields, Clock::time_point deadline,
                                       Handler handler) {
  const std::uint64_t id = next_id_++;
  fields["id"] = id;
  fields["type"] = type;
  const std::lock_guard writing(write_mutex_);
  {
    const std::lock_guard lock(mutex_);
    if (!connected_) return Unexpected(last_error_);
    pending_.emplace(id, Pending{std::move(handler), deadline});
  }
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  const auto longest = static_cast<int>(std::clamp(left, kLeastSend, kLongestSend).count());
  if (auto sent = wire::send_frame(socket_.get(), fields, -1, longest); !sent) {
    // Half a frame may be out: nothing more can be said on this stream. The thread sees the end and tells everyone.
    ::shutdown(socket_.get(), SHUT_RDWR);
    const std::lock_guard lock(mutex_);
    if (pending_.erase(id) == 1) return Unexpected(sent.error());
    return id;
  }
  wake();  // a new, maybe earlier deadline
  return id;
}

Result<Reply> Connection::call(const std::string& type, Json fields, milliseconds deadline) {
  if (on_own_thread())
    return bad_input("thread", "the upgrade callback", "another thread: this call would wait for itself");
  const auto until = Clock::now() + deadline;
  TRY(wait_connected(until));
  struct Waiter {
    std::mutex mutex;
    std::condition_variable ready;
    std::optional<Result<Reply>> result;
  };
  // Shared: the reply may come while this call leaves.
  auto waiter = std::make_shared<Waiter>();
  TRY_ASSIGN(const std::uint64_t id, send(type, std::move(fields), until, [waiter](Result<Reply> result) {
               const std::lock_guard lock(waiter->mutex);
               waiter->result = std::move(result);
               waiter->ready.notify_one();
             }));
  std::unique_lock lock(waiter->mutex);
  if (!waiter->ready.wait_until(lock, until, [&] { return waiter->result.has_value(); })) {
    const std::lock_guard pending(mutex_);
    pending_.erase(id);
    return fail(Code::deadline, "tunerd did not answer in time");
  }
  return std::move(*waiter->result);
}

void Connection::post(const std::string& type, Json fields, milliseconds deadline, Handler handler) {
  auto shared = std::make_shared<Handler>(std::move(handler));
  const auto once = [shared](Result<Reply> result) {
    if (Handler call = std::exchange(*shared, nullptr)) call(std::move(result));
  };
  if (auto sent = send(type, std::move(fields), Clock::now() + deadline, once); !sent) once(Unexpected(sent.error()));
}

}  // namespace tunerd::client
