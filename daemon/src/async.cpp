#include "async.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "log.h"
#include "wire/frame.h"

namespace tunerd::daemon {
namespace {

Unexpected closed() { return fail(Code::io, "closed by peer"); }

// Reads exactly `size` bytes, taking a descriptor that comes with them.
Task<Status> read_exactly(Socket& socket, char* to, std::size_t size, Clock::time_point deadline, int* fd) {
  std::size_t have = 0;
  while (have < size) {
    iovec part{to + have, size - have};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(socket.native_handle(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got > 0) {
      for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        int passed = -1;
        std::memcpy(&passed, CMSG_DATA(header), sizeof passed);
        if (fd != nullptr && *fd < 0)
          *fd = passed;
        else
          ::close(passed);
      }
      have += static_cast<std::size_t>(got);
      continue;
    }
    if (got == 0) co_return closed();
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK)
      co_return fail(Code::io, std::string("Cannot read: ") + std::strerror(errno));
    if (!co_await ready(socket, Socket::wait_read, deadline))
      co_return fail(Code::deadline, "The frame was not complete in time");
  }
  co_return Status{};
}

}  // namespace

Task<bool> ready(Socket& socket, Socket::wait_type what, Clock::time_point deadline) {
  if (deadline == Clock::time_point::max()) {
    const auto [error] = co_await socket.async_wait(what, kTuple);
    co_return !error;
  }
  auto expired = std::make_shared<bool>(false);
  asio::steady_timer timer(co_await asio::this_coro::executor, deadline);
  timer.async_wait([expired, &socket](const boost::system::error_code& error) {
    if (error || *expired) return;
    *expired = true;
    boost::system::error_code ignored;
    socket.cancel(ignored);
  });
  const auto [error] = co_await socket.async_wait(what, kTuple);
  const bool in_time = !*expired;
  *expired = true;  // a callback already queued must not touch the socket any more
  timer.cancel();
  co_return !error && in_time;
}

void Signal::notify() {
  happened_ = true;
  for (auto* timer : waiting_) timer->cancel();
}

Task<bool> Signal::wait_until(Clock::time_point deadline) {
  if (happened_) co_return true;
  asio::steady_timer timer(executor_, deadline);
  waiting_.insert(&timer);
  co_await timer.async_wait(kTuple);
  waiting_.erase(&timer);
  co_return happened_;
}

Task<void> Mutex::lock() {
  if (!held_) {
    held_ = true;
    co_return;
  }
  auto turn = std::make_shared<Signal>(executor_);
  queue_.push_back(turn);
  co_await turn->wait_until(Clock::time_point::max());
}

void Mutex::unlock() {
  if (queue_.empty()) {
    held_ = false;
    return;
  }
  auto next = queue_.front();  // stays held: the next one has it now
  queue_.pop_front();
  next->notify();
}

void spawn(asio::io_context& loop, const char* what, std::function<Task<void>()> work) {
  asio::co_spawn(loop, std::move(work), [what](const std::exception_ptr& failure) {
    if (!failure) return;
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      log_error(std::string(what) + ": " + error.what());
    }
  });
}

Task<Result<Json>> read_frame(Socket& socket, std::uint32_t max_body_bytes, Clock::time_point first_byte,
                              Clock::duration rest, int* fd) {
  if (fd != nullptr) *fd = -1;
  // Until the first byte the peer may be idle; from then on the frame must be complete within `rest`.
  if (!co_await ready(socket, Socket::wait_read, first_byte)) co_return fail(Code::deadline, "Nothing came in time");
  const auto deadline = Clock::now() + rest;
  char head[wire::kHeaderBytes];
  if (auto read = co_await read_exactly(socket, head, sizeof head, deadline, fd); !read)
    co_return Unexpected(read.error());
  const auto header = wire::parse_header({head, sizeof head}, max_body_bytes);
  if (!header) co_return Unexpected(header.error());
  std::string body(header->length, '\0');
  if (auto read = co_await read_exactly(socket, body.data(), body.size(), deadline, nullptr); !read)
    co_return Unexpected(read.error());
  co_return wire::parse_body(body);
}

Result<std::size_t> send_now(Socket& socket, std::string_view bytes, int fd_to_pass) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    iovec part{const_cast<char*>(bytes.data()) + sent, bytes.size() - sent};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (fd_to_pass >= 0 && sent == 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &fd_to_pass, sizeof fd_to_pass);
    }
    const ssize_t wrote = ::sendmsg(socket.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (wrote >= 0)
      sent += static_cast<std::size_t>(wrote);
    else if (errno == EAGAIN || errno == EWOULDBLOCK)
      break;
    else if (errno != EINTR)
      return fail(Code::io, std::string("Cannot write: ") + std::strerror(errno));
  }
  return sent;
}

Task<Status> write_bytes(Socket& socket, const std::string& bytes, int fd_to_pass, Clock::time_point deadline) {
  std::size_t sent = 0;
  while (true) {
    const auto more = send_now(socket, std::string_view(bytes).substr(sent), sent == 0 ? fd_to_pass : -1);
    if (!more) co_return Unexpected(more.error());
    sent += *more;
    if (sent == bytes.size()) co_return Status{};
    if (!co_await ready(socket, Socket::wait_write, deadline))
      co_return fail(Code::deadline, "The peer did not read in time");
  }
}

}  // namespace tunerd::daemon
