#include "inbox.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace tunerd::daemon {
namespace {

constexpr std::size_t kReadBytes = 64u << 10;
constexpr std::size_t kMaxDescriptors = 8;  // in one message; the kernel closes any further ones

}  // namespace

Inbox::~Inbox() {
  if (fd_ >= 0) ::close(fd_);
}

Result<bool> Inbox::take(Frame& frame) {
  const std::string_view have = std::string_view(bytes_).substr(begin_);
  if (have.size() < wire::kHeaderBytes) return false;
  TRY_ASSIGN(frame.header, wire::parse_header(have.substr(0, wire::kHeaderBytes), wire::kMaxRequestBytes));
  const std::size_t size = wire::kHeaderBytes + frame.header.length;
  if (have.size() < size) return false;
  frame.body = have.substr(wire::kHeaderBytes, frame.header.length);
  begin_ += size;
  if ((frame.header.flags & wire::kFlagFd) != 0) frame.fd = std::exchange(fd_, -1);
  return true;
}

Status Inbox::read_some() {
  bytes_.erase(0, begin_);
  begin_ = 0;
  const std::size_t had = bytes_.size();
  bytes_.resize(had + kReadBytes);
  iovec part{bytes_.data() + had, kReadBytes};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = 0;
  do got = ::recvmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  const int error = errno;
  bytes_.resize(had + (got > 0 ? static_cast<std::size_t>(got) : 0));
  if (got == 0) return fail(Code::io, "closed by peer");
  if (got < 0) {
    if (error == EAGAIN || error == EWOULDBLOCK) return {};
    return fail(Code::io, std::string("Cannot read: ") + std::strerror(error));
  }
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int passed = -1;
      std::memcpy(&passed, CMSG_DATA(header) + i * sizeof(int), sizeof passed);
      if (fd_ < 0)
        fd_ = passed;
      else
        ::close(passed);
    }
  }
  return {};
}

Task<Result<Inbox::Frame>> Inbox::next(Clock::time_point first_byte, Clock::duration rest) {
  Frame frame;
  bool began = begin_ < bytes_.size();
  if (began) started_ = Clock::now();
  while (true) {
    const auto whole = take(frame);
    if (!whole) co_return Unexpected(whole.error());
    if (*whole) co_return frame;
    // Idle, a peer may take as long as `first_byte` allows; a frame it began must end in time.
    const auto deadline = began ? started_ + rest : first_byte;
    if (!co_await ready(socket_, Socket::wait_read, deadline)) {
      if (Clock::now() < deadline) co_return fail(Code::io, "closed by peer");
      co_return fail(Code::deadline, began ? "The frame was not complete in time" : "Nothing came in time");
    }
    if (auto read = read_some(); !read) co_return Unexpected(read.error());
    if (!began && begin_ < bytes_.size()) {
      began = true;
      started_ = Clock::now();
    }
  }
}

}  // namespace tunerd::daemon
