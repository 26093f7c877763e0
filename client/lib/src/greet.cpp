#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "connection.h"
#include "wire/frame.h"
#include "wire/messages.h"

namespace tunerd::client {
namespace {

using Clock = std::chrono::steady_clock;

int left_ms(Clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  return static_cast<int>(left < 0 ? 0 : left);
}

Unexpected unreachable(const std::string& path, const char* why) {
  return Unexpected(
      Error{Code::io, std::string("no tunerd answers: ") + why, "socket", path, "the socket of a running tunerd", {}});
}

Result<Descriptor> connect_to(const std::string& path, Clock::time_point until) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return bad_input("socket", path, "a path of 1 to " + std::to_string(sizeof address.sun_path - 1) + " bytes");
  std::memcpy(address.sun_path, path.data(), path.size());
  while (true) {
    Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return fail(Code::io, std::string("socket failed: ") + std::strerror(errno));
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return socket;
    // EAGAIN: the daemon's backlog is full for the moment.
    if (errno != EAGAIN && errno != EINTR) return unreachable(path, std::strerror(errno));
    if (left_ms(until) == 0) return unreachable(path, "its backlog stayed full");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Status check_hello(const Json& fields) {
  const std::string spoken = std::to_string(wire::kProtocolOldest) + " to " + std::to_string(wire::kProtocolVersion);
  const auto protocol = fields.find("protocol");
  const bool known = protocol != fields.end() && protocol->is_number_integer() && *protocol >= wire::kProtocolOldest &&
                     *protocol <= wire::kProtocolVersion;
  if (known) return {};
  return Unexpected(Error{Code::unsupported,
                          "this client and the daemon speak no common protocol version",
                          "protocol",
                          protocol == fields.end() ? "nothing" : protocol->dump().substr(0, 32),
                          spoken,
                          {}});
}

}  // namespace

Result<Descriptor> connect_and_greet(const ConnectionOptions& options) {
  const auto until = Clock::now() + std::chrono::milliseconds(options.deadline_ms);
  TRY_ASSIGN(Descriptor socket, connect_to(options.socket_path, until));
  const Json hello{{"id", 1},
                   {"type", "hello"},
                   {"protocol_min", wire::kProtocolOldest},
                   {"protocol_max", wire::kProtocolVersion},
                   {"client", options.client_name}};
  TRY(wire::send_frame(socket.get(), hello, -1, left_ms(until)));
  TRY_ASSIGN(Json reply, wire::receive_frame(socket.get(), wire::kMaxReplyBytes, nullptr, left_ms(until)));
  const auto id = reply.find("id");
  if (id == reply.end() || !id->is_number_integer() || *id != 1)
    return Unexpected(Error{Code::corrupt,
                            "the daemon did not answer the hello first",
                            "id",
                            id == reply.end() ? "nothing" : id->dump().substr(0, 32),
                            "1",
                            {}});
  TRY_ASSIGN(const Json fields, wire::unwrap_reply(std::move(reply)));
  TRY(check_hello(fields));
  return socket;
}

}  // namespace tunerd::client
