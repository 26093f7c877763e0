#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "wire/frame.h"

using namespace tunerd;
using namespace tunerd::wire;

namespace {

struct Pair {
  std::array<int, 2> fds{-1, -1};
  Pair() { REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) == 0); }
  ~Pair() {
    close_one(0);
    close_one(1);
  }
  void close_one(std::size_t i) {
    if (fds[i] >= 0) ::close(fds[i]);
    fds[i] = -1;
  }
  void write(std::size_t i, std::string_view text) const {
    REQUIRE(::write(fds[i], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
};

int memfd(const std::string& text) {
  const int fd = ::memfd_create("frame_socket_test", MFD_CLOEXEC);
  REQUIRE(::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  return fd;
}

std::string content(int fd) {
  std::string text(64, '\0');
  const ssize_t got = ::pread(fd, text.data(), text.size(), 0);
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return text;
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

// A header with descriptors that no well-behaved sender would send.
void send_raw(int socket, const std::string& bytes, const std::vector<int>& fds) {
  std::vector<char> control(CMSG_SPACE(fds.size() * sizeof(int)));
  iovec span{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &span;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
  }
  REQUIRE(::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

}  // namespace

TEST_CASE("a frame and its descriptor arrive together") {
  Pair pair;
  const int fd = memfd("cubin");
  REQUIRE(send_frame(pair.fds[0], Json{{"id", 1}}, fd, 1000));
  ::close(fd);
  int received = -1;
  const auto body = receive_frame(pair.fds[1], 1024, &received, 1000);
  REQUIRE(body);
  CHECK(*body == Json{{"id", 1}});
  REQUIRE(received >= 0);
  CHECK(content(received) == "cubin");
  CHECK((::fcntl(received, F_GETFD) & FD_CLOEXEC) != 0);
  ::close(received);
}

TEST_CASE("frames keep their order and their descriptors apart") {
  Pair pair;
  const int fd = memfd("second");
  REQUIRE(send_frame(pair.fds[0], Json{{"id", 1}}, -1, 1000));
  REQUIRE(send_frame(pair.fds[0], Json{{"id", 2}}, fd, 1000));
  REQUIRE(send_frame(pair.fds[0], Json{{"id", 3}}, -1, 1000));
  ::close(fd);
  for (int id = 1; id <= 3; ++id) {
    int received = -1;
    const auto body = receive_frame(pair.fds[1], 1024, &received, 1000);
    REQUIRE(body);
    CHECK((*body)["id"] == id);
    CHECK((received >= 0) == (id == 2));
    if (received >= 0) ::close(received);
  }
}

TEST_CASE("a body larger than the socket's buffer arrives whole") {
  Pair pair;
  const Json body{{"blob", std::string(8 << 20, 'x')}};
  Status sent;
  std::thread sender([&] { sent = send_frame(pair.fds[0], body, -1, 20'000); });
  const auto got = receive_frame(pair.fds[1], kMaxReplyBytes, nullptr, 20'000);
  sender.join();
  CHECK(sent);
  REQUIRE(got);
  CHECK(*got == body);
}

TEST_CASE("a descriptor nobody asked for is closed, and so are further ones") {
  Pair pair;
  const int fd = memfd("x");
  const std::size_t before = open_descriptors();
  std::string frame = encode_frame(Json::object());
  send_raw(pair.fds[0], frame, {fd});  // not announced
  frame = encode_frame(Json::object(), kFlagFd);
  send_raw(pair.fds[0], frame, {fd, fd, fd});
  send_raw(pair.fds[0], frame, {fd});  // announced, not wanted
  int received = -1;
  REQUIRE(receive_frame(pair.fds[1], 1024, &received, 1000));
  CHECK(received == -1);
  REQUIRE(receive_frame(pair.fds[1], 1024, &received, 1000));
  CHECK(received >= 0);
  CHECK(open_descriptors() == before + 1);
  ::close(received);
  REQUIRE(receive_frame(pair.fds[1], 1024, nullptr, 1000));
  CHECK(open_descriptors() == before);
  ::close(fd);
}

TEST_CASE("a descriptor that is announced and does not come is an error that names the flags") {
  Pair pair;
  pair.write(0, encode_frame(Json::object(), kFlagFd));
  int received = -1;
  const auto body = receive_frame(pair.fds[1], 1024, &received, 1000);
  REQUIRE_FALSE(body);
  CHECK(body.error().field == "flags");
  CHECK(received == -1);
}

TEST_CASE("a truncated frame is an error that names the length") {
  const std::string frame = encode_frame(Json{{"id", 1}});
  for (const std::size_t length : {std::size_t{1}, kHeaderBytes - 1, kHeaderBytes, frame.size() - 1}) {
    Pair pair;
    pair.write(0, frame.substr(0, length));
    pair.close_one(0);
    const auto body = receive_frame(pair.fds[1], 1024, nullptr, 1000);
    REQUIRE_FALSE(body);
    CHECK(body.error().code == Code::corrupt);
    CHECK(body.error().field == "length");
  }
}

TEST_CASE("a peer that closes between frames is a clean end") {
  Pair pair;
  pair.close_one(0);
  const auto body = receive_frame(pair.fds[1], 1024, nullptr, 1000);
  REQUIRE_FALSE(body);
  CHECK(body.error().code == Code::io);
  CHECK(body.error().message == "closed by peer");
}

TEST_CASE("a peer that stops within a frame is a deadline, not a hang") {
  Pair pair;
  pair.write(0, encode_frame(Json{{"id", 1}}).substr(0, kHeaderBytes + 2));
  const auto begin = std::chrono::steady_clock::now();
  const auto body = receive_frame(pair.fds[1], 1024, nullptr, 50);
  REQUIRE_FALSE(body);
  CHECK(body.error().code == Code::deadline);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
}

TEST_CASE("a peer that does not read is a deadline, not a hang") {
  Pair pair;
  const auto sent = send_frame(pair.fds[0], Json{{"blob", std::string(16 << 20, 'x')}}, -1, 50);
  REQUIRE_FALSE(sent);
  CHECK(sent.error().code == Code::deadline);
}

TEST_CASE("writing to a closed socket is an error, not a signal") {
  Pair pair;
  pair.close_one(1);
  const auto sent = send_frame(pair.fds[0], Json{{"id", 1}}, -1, 1000);
  REQUIRE_FALSE(sent);
  CHECK(sent.error().code == Code::io);
}

TEST_CASE("an over-long frame is refused before its body is read") {
  Pair pair;
  pair.write(0, encode_frame(Json{{"text", std::string(2000, 'x')}}));
  const auto body = receive_frame(pair.fds[1], 1024, nullptr, 1000);
  REQUIRE_FALSE(body);
  CHECK(body.error().field == "length");
}
