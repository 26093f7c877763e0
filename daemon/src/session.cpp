#include "session.h"

#include <unistd.h>

#include <limits>

#include "inbox.h"
#include "log.h"
#include "requests.h"
#include "server.h"
#include "wire/frame.h"

namespace tunerd::daemon {
namespace {

constexpr auto kGreetingDeadline = std::chrono::seconds(10);  // from the connection to a complete hello
constexpr auto kFrameDeadline = std::chrono::seconds(10);     // from a frame's first byte to its last
constexpr auto kWriteDeadline = std::chrono::seconds(30);     // for a client to take one frame
constexpr std::size_t kQueueBytes = 64u << 20;                // not yet read by the client
constexpr std::size_t kInFlight = 256;                        // requests of one client at once
constexpr std::size_t kRemembered = 65'536;                   // problems a client asked for, for pushes

std::uint64_t id_of(const Json& body) {
  const auto id = body.find("id");
  return id != body.end() && id->is_number_unsigned() ? id->get<std::uint64_t>() : 0;
}

}  // namespace

Session::Session(Server& server, Socket socket, Peer peer)
    : server_(server), socket_(std::move(socket)), peer_(peer), work_(server.core().loop.get_executor()) {}

void Session::start() {
  auto self = shared_from_this();
  spawn(server_.core().loop, "session", [self]() { return self->read(); });
  spawn(server_.core().loop, "session", [self]() { return self->write(); });
}

void Session::close() {
  if (closed_) return;
  closed_ = true;
  boost::system::error_code ignored;
  socket_.close(ignored);
  work_.notify();
  server_.forget(this);
}

void Session::send(const Json& body, std::shared_ptr<const SealedFile> file) {
  const std::uint16_t flags = file ? wire::kFlagFd : std::uint16_t{0};
  send_bytes(wire::encode_frame(body, flags), std::move(file));
}

void Session::send_bytes(std::string bytes, std::shared_ptr<const SealedFile> file) {
  if (closed_) return;
  if (queue_.empty() && !writing_) {
    const auto sent = send_now(socket_, bytes, file ? file->fd() : -1);
    if (!sent) return close();
    if (*sent == bytes.size()) return;
    if (*sent > 0) file.reset();  // gone with the first byte
    bytes.erase(0, *sent);
  }
  queued_bytes_ += bytes.size();
  if (queued_bytes_ > kQueueBytes) {
    ++server_.core().counters.dropped_clients;
    log_warn("dropped client " + name_ + " (pid " + std::to_string(peer_.pid) + "): it does not read its answers");
    close();
    return;
  }
  queue_.push_back({std::move(bytes), std::move(file)});
  work_.notify();
}

bool Session::answer_again(std::string_view body) {
  auto& core = server_.core();
  const auto id = wire::find_id(body);
  if (!id || id->id == 0) return false;
  const auto* ready = core.answers.find({body.substr(0, id->at), body.substr(id->at + id->size)});
  if (ready == nullptr) return false;
  ++core.counters.requests;
  ++core.counters.served["exact"];
  asked_for(ready->problem);
  send_bytes(with_id(*ready, id->id), ready->file);
  return true;
}

void Session::remember(std::string_view body, const Json& reply, std::shared_ptr<const SealedFile> file,
                       std::string problem) {
  const auto id = wire::find_id(body);
  if (!id) return;
  Answers::Ready ready;
  Json longest = reply;
  longest["id"] = std::numeric_limits<std::uint64_t>::max();
  ready.frame = wire::encode_frame(longest, file ? wire::kFlagFd : std::uint16_t{0});
  const auto at = wire::find_id(std::string_view(ready.frame).substr(wire::kHeaderBytes));
  if (!at || at->size != 9) return;
  ready.id_at = wire::kHeaderBytes + at->at + 1;
  ready.file = std::move(file);
  ready.problem = std::move(problem);
  server_.core().answers.put({body.substr(0, id->at), body.substr(id->at + id->size)}, std::move(ready));
}

bool Session::subscribed_to(const std::string& op, const std::string& problem_key) const {
  return subscribed_ && (ops_.contains(op) || problems_.contains(problem_key));
}

void Session::subscribe(std::optional<std::string> op) {
  subscribed_ = true;
  if (op) ops_.insert(std::move(*op));
}

void Session::asked_for(const std::string& problem_key) {
  if (problems_.size() < kRemembered) problems_.insert(problem_key);
}

Task<void> Session::read() {
  auto self = shared_from_this();
  auto first_byte = Clock::now() + kGreetingDeadline;
  Inbox inbox(socket_);
  while (!closed_) {
    const auto frame = co_await inbox.next(first_byte, kFrameDeadline);
    const int fd = frame ? frame->fd : -1;
    if (closed_) {
      if (fd >= 0) ::close(fd);
      break;
    }
    if (frame && fd < 0 && greeted_ && answer_again(frame->body)) continue;
    auto body = frame ? wire::parse_body(frame->body) : Result<Json>(Unexpected(frame.error()));
    if (!body) {
      if (fd >= 0) ::close(fd);
      const Error& error = body.error();
      if (error.code != Code::io) {
        ++server_.core().counters.bad_requests;
        send(wire::error_reply(0, error));
        // The writer gets a moment to say why before the connection goes.
        asio::steady_timer moment(server_.core().loop, std::chrono::milliseconds(100));
        co_await moment.async_wait(kTuple);
      }
      break;
    }
    if (!greeted_ && body->value("type", Json()) != "hello") {
      if (fd >= 0) ::close(fd);
      send(wire::error_reply(id_of(*body), Error{Code::invalid_argument,
                                                 "The first request must be hello",
                                                 "type",
                                                 body->value("type", Json()).dump().substr(0, 40),
                                                 "hello",
                                                 {}}));
      asio::steady_timer moment(server_.core().loop, std::chrono::milliseconds(100));
      co_await moment.async_wait(kTuple);
      break;
    }
    if (id_of(*body) == 0) {
      if (fd >= 0) ::close(fd);
      ++server_.core().counters.bad_requests;
      const auto id = body->find("id");
      send(wire::error_reply(0, Error{Code::invalid_argument,
                                      "Bad value for id",
                                      "id",
                                      id == body->end() ? "" : id->dump().substr(0, 40),
                                      "a positive integer: replies carry it, and 0 is for pushes",
                                      {}}));
      continue;
    }
    if (!greeted_) {
      // Nothing else is read before the hello is answered, and without a common version nothing at all.
      ++in_flight_;
      co_await handle(std::move(*body), fd, {});
      if (greeted_) first_byte = Clock::time_point::max();
      if (greeted_) continue;
      asio::steady_timer moment(server_.core().loop, std::chrono::milliseconds(100));
      co_await moment.async_wait(kTuple);
      break;
    }
    if (in_flight_ >= kInFlight) {
      if (fd >= 0) ::close(fd);
      send(wire::error_reply(id_of(*body), Error{Code::busy,
                                                 "Too many requests in flight on this connection",
                                                 "requests",
                                                 std::to_string(in_flight_),
                                                 "at most " + std::to_string(kInFlight),
                                                 {}}));
      continue;
    }
    first_byte = Clock::time_point::max();
    ++in_flight_;
    spawn(server_.core().loop, "request",
          [self, request = std::move(*body), fd, raw = std::string(frame->body)]() mutable {
            return self->handle(std::move(request), fd, std::move(raw));
          });
  }
  close();
}

Task<void> Session::handle(Json body, int fd, std::string raw) {
  auto self = shared_from_this();
  const auto id = id_of(body);
  ++server_.core().counters.requests;
  Result<Reply> reply = fail(Code::internal, "The request failed in an unexpected way");
  try {
    reply = co_await answer_request(server_, *this, body, fd);
  } catch (const std::exception& error) {
    log_error(std::string("request: ") + error.what());
  }
  --in_flight_;
  if (!reply) {
    if (reply.error().code == Code::invalid_argument) ++server_.core().counters.bad_requests;
    if (reply.error().code == Code::denied) {
      ++server_.core().counters.denied;
      log_warn("denied " + body.value("type", std::string("?")) + " to uid " + std::to_string(peer_.uid) + " pid " +
               std::to_string(peer_.pid));
    }
    send(wire::error_reply(id, reply.error()));
    co_return;
  }
  const Json whole = wire::ok_reply(id, std::move(reply->fields));
  if (!reply->settled.empty()) remember(raw, whole, reply->file, std::move(reply->settled));
  send(whole, std::move(reply->file));
  if (reply->stop) server_.request_stop();
  if (reply->close) {
    asio::steady_timer moment(server_.core().loop, std::chrono::milliseconds(100));
    co_await moment.async_wait(kTuple);
    close();
  }
}

Task<void> Session::write() {
  auto self = shared_from_this();
  while (!closed_) {
    if (queue_.empty()) {
      work_.reset();
      co_await work_.wait_until(Clock::time_point::max());
      continue;
    }
    Frame frame = std::move(queue_.front());
    queue_.pop_front();
    writing_ = true;
    auto sent =
        co_await write_bytes(socket_, frame.bytes, frame.file ? frame.file->fd() : -1, Clock::now() + kWriteDeadline);
    writing_ = false;
    queued_bytes_ -= frame.bytes.size();
    if (!sent) {
      if (sent.error().code == Code::deadline) ++server_.core().counters.dropped_clients;
      break;
    }
  }
  close();
}

}  // namespace tunerd::daemon
