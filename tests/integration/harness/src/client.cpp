#include "harness/client.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "wire/messages.h"

namespace tunerd::test {
namespace {

using Clock = std::chrono::steady_clock;

int left_ms(Clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  return static_cast<int>(left < 0 ? 0 : left);
}

bool is_push(const Json& body) {
  return body.contains("id") && body["id"].is_number_integer() && body["id"] == 0 && body.contains("type");
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

std::string Descriptor::bytes() const {
  std::string out;
  char part[65536];
  ssize_t got = 0;
  while ((got = ::pread(fd_, part, sizeof part, static_cast<off_t>(out.size()))) > 0) {
    out.append(part, static_cast<std::size_t>(got));
  }
  return out;
}

Result<Client> Client::connect(const std::filesystem::path& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = socket.string();
  if (path.size() >= sizeof address.sun_path) return bad_input("socket", path, "a shorter path");
  std::memcpy(address.sun_path, path.data(), path.size());
  Client client;
  client.socket_ = Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(client.socket(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail(Code::io, std::string("connect: ") + std::strerror(errno));
  }
  return client;
}

Result<Client> Client::greet(const std::filesystem::path& socket) {
  TRY_ASSIGN(Client client, connect(socket));
  TRY_ASSIGN(Reply reply, client.call("hello", {{"protocol_min", wire::kProtocolOldest},
                                                {"protocol_max", wire::kProtocolVersion},
                                                {"client", "test"}}));
  client.hello_ = std::move(reply.fields);
  return client;
}

Status Client::send(std::uint64_t id, const std::string& type, Json fields, int fd_to_pass) {
  fields["id"] = id;
  fields["type"] = type;
  return wire::send_frame(socket(), fields, fd_to_pass, kPatienceMs);
}

Status Client::send_bytes(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return fail(Code::io, std::string("send: ") + std::strerror(errno));
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<Reply> Client::receive(int deadline_ms) {
  int fd = -1;
  auto body = wire::receive_frame(socket(), wire::kMaxReplyBytes, &fd, deadline_ms);
  Descriptor file(fd);
  if (!body) return Unexpected(std::move(body.error()));
  return Reply{std::move(*body), std::move(file)};
}

Result<Reply> Client::call(const std::string& type, Json fields, int fd_to_pass, int deadline_ms) {
  const std::uint64_t id = ++last_id_;
  const auto until = Clock::now() + std::chrono::milliseconds(deadline_ms);
  TRY(send(id, type, std::move(fields), fd_to_pass));
  while (true) {
    TRY_ASSIGN(Reply reply, receive(left_ms(until)));
    if (is_push(reply.fields)) {
      pushes_.push_back(std::move(reply.fields));
      continue;
    }
    const bool mine = reply.fields.contains("id") && (reply.fields["id"] == id || reply.fields["id"] == 0);
    if (!mine) return fail(Code::corrupt, "a reply to another request: " + reply.fields.dump().substr(0, 200));
    TRY_ASSIGN(reply.fields, wire::unwrap_reply(std::move(reply.fields)));
    return reply;
  }
}

std::optional<Json> Client::push(int deadline_ms) {
  const auto until = Clock::now() + std::chrono::milliseconds(deadline_ms);
  while (pushes_.empty()) {
    auto reply = receive(left_ms(until));
    if (!reply) return std::nullopt;
    if (is_push(reply->fields)) pushes_.push_back(std::move(reply->fields));
  }
  Json push = std::move(pushes_.front());
  pushes_.pop_front();
  return push;
}

Json get_fields(const std::string& op, Json problem, const std::string& wait) {
  return {{"op", op}, {"fields", std::move(problem)}, {"wait", wait}, {"deadline_ms", 60'000}};
}

}  // namespace tunerd::test
