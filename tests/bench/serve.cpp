// How long a client waits for a kernel that is known: over the socket, beside a bare ping-pong of the same kind, and in
// process.
//
//   bench-serve SOCKET OP NAME=VALUE…   the daemon at SOCKET must know an exact winner of that problem; prints one JSON
//   object
//
// ping_pong    a 512-byte message there and back between two processes over a Unix socket: what the system asks for it
// get          a get whose answer is known, one client, one at a time; the kernel comes with it as a descriptor, which
// is closed get_many     50 clients, one request each under way, one thread for all of them held         tuner_get of a
// kernel that the process holds already
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iostream>
#include <vector>

#include "tuner.h"
#include "wire/frame.h"

using namespace tunerd;

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kRounds = 20'000, kWarm = 500, kPingBytes = 512, kClients = 50, kManyRounds = 60'000;

[[noreturn]] void stop(const std::string& why) {
  std::cerr << "bench-serve: " << why << '\n';
  std::exit(1);
}

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

Json percentiles(std::vector<double> us) {
  std::sort(us.begin(), us.end());
  const auto at = [&](double share) {
    return us[static_cast<std::size_t>(share * static_cast<double>(us.size() - 1))];
  };
  return {{"p50_us", at(0.5)},    {"p90_us", at(0.9)},   {"p99_us", at(0.99)},
          {"p999_us", at(0.999)}, {"max_us", us.back()}, {"samples", us.size()}};
}

void read_all(int fd, char* to, std::size_t size) {
  for (std::size_t have = 0; have < size;) {
    const ssize_t got = ::read(fd, to + have, size - have);
    if (got <= 0) stop("the other side closed");
    have += static_cast<std::size_t>(got);
  }
}

Json ping_pong() {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) stop("socketpair failed");
  const pid_t child = ::fork();
  char bytes[kPingBytes] = {};
  if (child == 0) {
    ::close(pair[0]);
    for (;;) {
      std::size_t have = 0;
      while (have < sizeof bytes) {
        const ssize_t got = ::read(pair[1], bytes + have, sizeof bytes - have);
        if (got <= 0) ::_exit(0);
        have += static_cast<std::size_t>(got);
      }
      if (::write(pair[1], bytes, sizeof bytes) != static_cast<ssize_t>(sizeof bytes)) ::_exit(1);
    }
  }
  ::close(pair[1]);
  std::vector<double> us;
  for (std::size_t i = 0; i < kWarm + kRounds; ++i) {
    const auto begin = Clock::now();
    if (::write(pair[0], bytes, sizeof bytes) != static_cast<ssize_t>(sizeof bytes)) stop("write failed");
    read_all(pair[0], bytes, sizeof bytes);
    if (i >= kWarm) us.push_back(us_since(begin));
  }
  ::close(pair[0]);
  ::waitpid(child, nullptr, 0);
  return percentiles(std::move(us));
}

class Raw {
 public:
  Raw(const std::string& path, const Json& question) {
    socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) stop("no tunerd at " + path);
    const Json hello = {
        {"id", 1}, {"type", "hello"}, {"protocol_min", 1}, {"protocol_max", 1}, {"client", "bench-serve"}};
    if (!wire::send_frame(socket_, hello) || !wire::receive_frame(socket_, wire::kMaxReplyBytes, nullptr))
      stop("no hello");
    Json asked = question;
    asked["id"] = std::uint64_t{1} << 40;
    frame_ = wire::encode_frame(asked);
    id_at_ = wire::kHeaderBytes + wire::find_id(std::string_view(frame_).substr(wire::kHeaderBytes))->at + 1;
    reply_.resize(1 << 20);
  }
  int socket() const { return socket_; }
  void ask() {
    ++id_;
    for (std::size_t i = 0; i < 8; ++i) frame_[id_at_ + i] = static_cast<char>(id_ >> (56 - 8 * i) & 0xFF);
    if (::send(socket_, frame_.data(), frame_.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(frame_.size()))
      stop("send failed");
  }
  // The whole reply's bytes, and its descriptor closed.
  std::string_view take() {
    std::size_t have = 0, want = wire::kHeaderBytes;
    while (have < want) {
      iovec part{reply_.data() + have, reply_.size() - have};
      alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
      msghdr message{};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      const ssize_t got = ::recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
      if (got <= 0) stop("tunerd closed the connection");
      if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr && header->cmsg_type == SCM_RIGHTS) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
        ::close(fd);
        ++files_;
      }
      have += static_cast<std::size_t>(got);
      if (want == wire::kHeaderBytes && have >= want)
        want += wire::parse_header({reply_.data(), wire::kHeaderBytes}, wire::kMaxReplyBytes)->length;
    }
    return std::string_view(reply_).substr(wire::kHeaderBytes, want - wire::kHeaderBytes);
  }
  std::uint64_t id() const { return id_; }
  std::size_t files() const { return files_; }

 private:
  int socket_ = -1;
  std::string frame_, reply_;
  std::size_t id_at_ = 0, files_ = 0;
  std::uint64_t id_ = 1;
};

Json get_one(const std::string& path, const Json& question) {
  Raw raw(path, question);
  std::vector<double> us;
  Json last;
  for (std::size_t i = 0; i < kWarm + kRounds; ++i) {
    const auto begin = Clock::now();
    raw.ask();
    const std::string_view body = raw.take();
    if (i >= kWarm) us.push_back(us_since(begin));
    if (i + 1 == kWarm + kRounds) last = *wire::parse_body(body);
  }
  if (last["ok"] != true || last["quality"] != "exact" || last["id"] != raw.id() || raw.files() != kWarm + kRounds)
    stop("not an exact answer: " + last.dump().substr(0, 300));
  Json out = percentiles(std::move(us));
  out["cubin_bytes"] = last["cubin_bytes"];
  out["variant"] = last["variant"];
  return out;
}

Json get_many(const std::string& path, const Json& question) {
  std::vector<Raw> clients;
  std::vector<pollfd> polled;
  std::vector<Clock::time_point> asked(kClients);
  clients.reserve(kClients);
  for (std::size_t i = 0; i < kClients; ++i) {
    clients.emplace_back(path, question);
    polled.push_back({clients.back().socket(), POLLIN, 0});
  }
  std::vector<double> us;
  const auto begin = Clock::now();
  for (std::size_t i = 0; i < kClients; ++i) {
    asked[i] = Clock::now();
    clients[i].ask();
  }
  while (us.size() < kManyRounds) {
    ::poll(polled.data(), polled.size(), -1);
    for (std::size_t i = 0; i < kClients; ++i) {
      if ((polled[i].revents & POLLIN) == 0) continue;
      clients[i].take();
      us.push_back(us_since(asked[i]));
      asked[i] = Clock::now();
      clients[i].ask();
    }
  }
  const double seconds = us_since(begin) / 1e6;
  const double count = static_cast<double>(us.size());
  Json out = percentiles(std::move(us));
  out["clients"] = kClients;
  out["requests_per_s"] = count / seconds;
  return out;
}

Json held(const std::string& path, const std::string& op,
          const std::vector<std::pair<std::string, std::string>>& words) {
  tuner_options options = TUNER_OPTIONS_INIT;
  options.socket_path = path.c_str();
  tuner_client* client = nullptr;
  if (tuner_connect(&options, &client) != TUNER_OK) stop(tuner_last_error(nullptr));
  std::vector<tuner_dim> dims;
  std::vector<tuner_attribute> attributes;
  for (const auto& [name, value] : words) {
    char* end = nullptr;
    const std::int64_t number = std::strtoll(value.c_str(), &end, 10);
    if (*end == '\0')
      dims.push_back({name.c_str(), number});
    else
      attributes.push_back({name.c_str(), value.c_str()});
  }
  tuner_kernel* kernel = nullptr;
  const auto get = [&] {
    if (tuner_get(client, op.c_str(), dims.data(), dims.size(), attributes.data(), attributes.size(), TUNER_NOW, 0,
                  &kernel) != TUNER_OK)
      stop(tuner_last_error(client));
    tuner_kernel_release(kernel);
  };
  for (int i = 0; i < 1000; ++i) get();
  std::vector<double> ns;
  for (int batch = 0; batch < 2000; ++batch) {
    const auto begin = Clock::now();
    for (int i = 0; i < 100; ++i) get();
    ns.push_back(us_since(begin) * 10);
  }
  tuner_close(client);
  std::sort(ns.begin(), ns.end());
  return {{"p50_ns", ns[ns.size() / 2]}, {"p99_ns", ns[ns.size() * 99 / 100]}, {"calls_per_sample", 100}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) stop("usage: bench-serve SOCKET OP NAME=VALUE…");
  const std::string path = argv[1], op = argv[2];
  std::vector<std::pair<std::string, std::string>> words;
  Json fields = Json::object();
  for (int i = 3; i < argc; ++i) {
    const std::string word = argv[i];
    const auto equals = word.find('=');
    if (equals == std::string::npos) stop("expected NAME=VALUE, not " + word);
    words.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    char* end = nullptr;
    const std::int64_t number = std::strtoll(words.back().second.c_str(), &end, 10);
    fields[words.back().first] = *end == '\0' ? Json(number) : Json(words.back().second);
  }
  const Json question = {{"type", "get"}, {"op", op}, {"fields", fields}, {"wait", "now"}};
  Json out;
  out["ping_pong"] = ping_pong();
  out["get"] = get_one(path, question);
  out["get_many"] = get_many(path, question);
  out["held"] = held(path, op, words);
  out["ratio_get_to_ping_pong"] = out["get"]["p50_us"].get<double>() / out["ping_pong"]["p50_us"].get<double>();
  std::cout << out.dump(1) << '\n';
  return 0;
}
