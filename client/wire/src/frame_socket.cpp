#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <optional>

#include "wire/frame.h"

namespace tunerd::wire {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMaxDescriptors = 8;  // received to be closed; the kernel closes any further ones itself

struct Deadline {
  std::optional<Clock::time_point> at;
  explicit Deadline(int deadline_ms) {
    if (deadline_ms >= 0) at = Clock::now() + std::chrono::milliseconds(deadline_ms);
  }
  int left_ms() const {
    if (!at) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*at - Clock::now()).count();
    return static_cast<int>(std::clamp<long long>(left, 0, INT_MAX));
  }
};

Unexpected os_error(const char* what) { return fail(Code::io, std::string(what) + " failed: " + std::strerror(errno)); }

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

Status wait_for(int socket, short events, const Deadline& deadline, const char* what) {
  while (true) {
    pollfd entry{socket, events, 0};
    const int ready = ::poll(&entry, 1, deadline.left_ms());
    if (ready > 0) return {};  // errors and hang-ups show at the read or write itself
    if (ready == 0) return fail(Code::deadline, std::string("the peer did not ") + what + " in time");
    if (errno != EINTR) return os_error("poll");
  }
}

// A descriptor that closes unless taken.
struct Descriptor {
  int fd = -1;
  Descriptor() = default;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(-1); }
  void reset(int value) {
    if (fd >= 0) ::close(fd);
    fd = value;
  }
  int release() { return std::exchange(fd, -1); }
};

// Keeps the first descriptor, closes every further one.
void collect_descriptors(msghdr& message, Descriptor& kept) {
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr; control = CMSG_NXTHDR(&message, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(control) + i * sizeof(int), sizeof fd);
      if (kept.fd < 0) {
        kept.reset(fd);
      } else {
        ::close(fd);
      }
    }
  }
}

// Fills `size` bytes; returns how many came before the peer closed. Descriptors are wanted only with the header.
Result<std::size_t> read_fully(int socket, char* data, std::size_t size, Descriptor* descriptor,
                               const Deadline& deadline) {
  std::size_t done = 0;
  while (done < size) {
    iovec span{data + done, size - done};
    alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
    msghdr message{};
    message.msg_iov = &span;
    message.msg_iovlen = 1;
    if (descriptor != nullptr) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
    }
    const ssize_t got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got > 0) {
      if (descriptor != nullptr) collect_descriptors(message, *descriptor);
      done += static_cast<std::size_t>(got);
    } else if (got == 0) {
      return done;
    } else if (would_block(errno)) {
      TRY(wait_for(socket, POLLIN, deadline, "send a whole frame"));
    } else if (errno == ECONNRESET) {
      return done;
    } else if (errno != EINTR) {
      return os_error("recvmsg");
    }
  }
  return done;
}

Unexpected cut_short(const char* part, std::size_t got, std::size_t wanted) {
  return Unexpected(Error{Code::corrupt,
                          std::string("the peer closed within a frame's ") + part,
                          "length",
                          std::to_string(got) + " bytes",
                          std::to_string(wanted) + " bytes",
                          {}});
}

}  // namespace

Status send_frame(int socket, const Json& body, int fd_to_pass, int deadline_ms) {
  const Deadline deadline(deadline_ms);
  const std::string bytes = encode_frame(body, fd_to_pass >= 0 ? kFlagFd : std::uint16_t{0});
  if (bytes.size() - kHeaderBytes > kMaxReplyBytes)
    return bad_input("length", std::to_string(bytes.size() - kHeaderBytes),
                     "a body of at most " + std::to_string(kMaxReplyBytes) + " bytes");
  std::size_t done = 0;
  while (done < bytes.size()) {
    iovec span{const_cast<char*>(bytes.data()) + done, bytes.size() - done};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &span;
    message.msg_iovlen = 1;
    if (done == 0 && fd_to_pass >= 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &fd_to_pass, sizeof fd_to_pass);
    }
    const ssize_t sent = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) {
      done += static_cast<std::size_t>(sent);
    } else if (would_block(errno)) {
      TRY(wait_for(socket, POLLOUT, deadline, "read a whole frame"));
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return fail(Code::io, "closed by peer");
    } else if (errno != EINTR) {
      return os_error("sendmsg");
    }
  }
  return {};
}

Result<Json> receive_frame(int socket, std::uint32_t max_body_bytes, int* fd, int deadline_ms) {
  if (fd != nullptr) *fd = -1;
  const Deadline deadline(deadline_ms);
  Descriptor descriptor;
  char header_bytes[kHeaderBytes];
  TRY_ASSIGN(const std::size_t header_got, read_fully(socket, header_bytes, kHeaderBytes, &descriptor, deadline));
  if (header_got == 0) return fail(Code::io, "closed by peer");
  if (header_got < kHeaderBytes) return cut_short("header", header_got, kHeaderBytes);
  TRY_ASSIGN(const Header header, parse_header({header_bytes, kHeaderBytes}, max_body_bytes));
  const bool announced = (header.flags & kFlagFd) != 0;
  if (announced && descriptor.fd < 0)
    return Unexpected(Error{Code::corrupt,
                            "a frame announces a file descriptor and brings none",
                            "flags",
                            std::to_string(header.flags),
                            "one descriptor with the header's first byte",
                            {}});
  std::string body(header.length, '\0');
  TRY_ASSIGN(const std::size_t body_got, read_fully(socket, body.data(), body.size(), nullptr, deadline));
  if (body_got < body.size()) return cut_short("body", body_got, body.size());
  TRY_ASSIGN(Json json, parse_body(body));
  if (announced && fd != nullptr) *fd = descriptor.release();
  return json;
}

}  // namespace tunerd::wire
