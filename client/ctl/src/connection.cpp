#include "ctl/connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "model/paths.h"
#include "wire/frame.h"
#include "wire/messages.h"

namespace tunerd::ctl {
namespace {

using Clock = std::chrono::steady_clock;

// A frame that has begun to arrive must also end.
constexpr int kFrameDeadlineMs = 10'000;

Unexpected no_daemon(const std::string& path, const std::string& why) {
  Error error{Code::missing,
              "No tunerd answers at this socket: " + why + ".",
              "socket",
              path,
              "the socket of a running tunerd (start one, or name it with --socket or TUNERD_SOCKET)",
              {}};
  return Unexpected(std::move(error));
}

Result<Descriptor> connect_to(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text = path.string();
  if (text.empty() || text.size() >= sizeof(address.sun_path)) {
    return bad_input("socket", text, "a path of 1 to " + std::to_string(sizeof(address.sun_path) - 1) + " bytes");
  }
  std::memcpy(address.sun_path, text.data(), text.size());
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return fail(Code::io, std::string("Cannot make a socket: ") + std::strerror(errno) + ".");
  while (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    if (errno == EINTR) continue;
    return no_daemon(text, std::strerror(errno));
  }
  return socket;
}

}  // namespace

Descriptor::Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}
Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Result<Connection> Connection::open(const Globals& globals) {
  const std::filesystem::path path = globals.socket.empty() ? default_socket() : std::filesystem::path(globals.socket);
  TRY_ASSIGN(Descriptor socket, connect_to(path));
  Connection connection(std::move(socket));
  auto hello = connection.call(
      "hello",
      {{"protocol_min", wire::kProtocolOldest}, {"protocol_max", wire::kProtocolVersion}, {"client", "tunerctl"}});
  // A full daemon, or one of another user, closes at once.
  if (!hello && hello.error().code == Code::io) return no_daemon(path.string(), hello.error().message);
  if (!hello) return Unexpected(std::move(hello.error()));
  connection.hello_ = std::move(hello->fields);
  return connection;
}

Result<std::uint64_t> Connection::send(const std::string& type, Json fields, int fd_to_pass) {
  if (!fields.is_object()) fields = Json::object();
  fields["id"] = ++last_id_;
  fields["type"] = type;
  TRY(wire::send_frame(socket_.get(), fields, fd_to_pass, kFrameDeadlineMs));
  return last_id_;
}

Result<std::optional<Connection::Numbered>> Connection::next(int wait_ms) {
  pollfd readable{socket_.get(), POLLIN, 0};
  const int ready = ::poll(&readable, 1, wait_ms);
  // An interrupted wait is a short one: the caller looks at its flags and comes back.
  if (ready == 0 || (ready < 0 && errno == EINTR)) return std::nullopt;
  if (ready < 0) return fail(Code::io, std::string("Cannot wait for tunerd: ") + std::strerror(errno) + ".");
  int fd = -1;
  auto received = wire::receive_frame(socket_.get(), wire::kMaxReplyBytes, &fd, kFrameDeadlineMs);
  Descriptor descriptor(fd);
  if (!received) return Unexpected(std::move(received.error()));
  const auto id = received->find("id");
  if (id == received->end() || !id->is_number_unsigned() || id->get<std::uint64_t>() == 0) {
    const auto error = received->find("error");
    // An error without an id closes the connection: the daemon could not tell which request it was.
    if (error != received->end() && error->is_object()) return Unexpected(wire::error_from_json(*error));
    return std::nullopt;  // a push
  }
  Numbered numbered{id->get<std::uint64_t>(), Reply{}};
  auto fields = wire::unwrap_reply(std::move(*received));
  if (fields) {
    numbered.reply = Reply{std::move(*fields), std::move(descriptor)};
  } else {
    numbered.reply = Unexpected(std::move(fields.error()));
  }
  return std::optional<Numbered>(std::move(numbered));
}

Result<Reply> Connection::call(const std::string& type, Json fields, int deadline_ms, int fd_to_pass) {
  TRY_ASSIGN(const std::uint64_t id, send(type, std::move(fields), fd_to_pass));
  const auto end = Clock::now() + std::chrono::milliseconds(deadline_ms);
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) {
      return fail(Code::deadline,
                  "tunerd did not answer '" + type + "' within " + std::to_string(deadline_ms) + " ms.");
    }
    TRY_ASSIGN(std::optional<Numbered> numbered, next(int(left)));
    if (numbered && numbered->id == id) return std::move(numbered->reply);
  }
}

}  // namespace tunerd::ctl
