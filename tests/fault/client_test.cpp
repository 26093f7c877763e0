#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "harness/check.h"

using namespace tunerd;
using namespace tunerd::test;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// A header with any length, and then whatever the caller sends.
std::string header(std::uint32_t length) {
  std::string out = "TNRD";
  const auto put16 = [&](std::uint16_t value) {
    out += static_cast<char>(value & 0xff);
    out += static_cast<char>(value >> 8);
  };
  put16(wire::kProtocolVersion);
  put16(0);
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(length >> shift & 0xff);
  return out;
}

// Whether the daemon closes within the time; whatever it says before that is read away.
bool is_closed_within(Client& client, int deadline_ms) {
  const auto until = Clock::now() + std::chrono::milliseconds(deadline_ms);
  while (Clock::now() < until) {
    auto reply = client.receive(
        static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count()));
    if (!reply) return reply.error().code == Code::io;
  }
  return false;
}

}  // namespace

TEST_CASE("a frame of garbage closes only the client that sent it") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client good = daemon.client();
  std::string deep = header(100'000);
  deep += std::string(100'000, '\x81');  // arrays in arrays
  for (const std::string& bytes : {std::string(64, 'G'), header(wire::kMaxRequestBytes + 1), header(0xffffffffu),
                                   header(3) + "\xff\xff\xff", header(1) + "\x80", header(2) + "\xa1\x61", deep}) {
    CAPTURE(bytes.size());
    Client bad = daemon.client();
    must(bad.send_bytes(bytes));
    CHECK(is_closed_within(bad, 20'000));
    must(get_twice(good, 16, 16));
  }
  CHECK(daemon.resident_bytes() < std::int64_t{1} << 30);  // nothing was allocated for the lengths
}

TEST_CASE("a frame that does not end is closed at its deadline, and the others are served meanwhile") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client good = daemon.client(), half = daemon.client(), drip = daemon.client();
  must(get_twice(good, 16, 16));
  const auto start = Clock::now();
  must(half.send_bytes(header(1000) + "\xbf"));
  must(drip.send_bytes(header(1000)));
  bool dripping = true;
  double slowest_s = 0;
  while (dripping && seconds_since(start) < 25) {
    dripping = drip.send_bytes("\xbf").has_value();
    const auto asked = Clock::now();
    must(get_twice(good, 16, 16));
    slowest_s = std::max(slowest_s, seconds_since(asked));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  CHECK_FALSE(dripping);
  CHECK(seconds_since(start) > 5);  // not at once: a slow link is no fault
  CHECK(is_closed_within(half, 5000));
  CHECK(slowest_s < 2);
}

TEST_CASE("a client that never greets is closed, one that greeted may be idle") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client idle = daemon.client();
  Client silent = must(Client::connect(daemon.socket()));
  CHECK(is_closed_within(silent, 25'000));
  must(get_twice(idle, 16, 16));
}

TEST_CASE("a client that never reads is dropped at a bound, and the others notice nothing") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client good = daemon.client(), deaf = daemon.client();
  must(get_twice(good, 16, 16));
  const auto before = daemon.resident_bytes();
  const timeval limit{2, 0};
  ::setsockopt(deaf.socket(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const std::string request = wire::encode_frame({{"id", 5}, {"type", "variants"}, {"problem", twice_problem(16, 16)}});
  // Until the daemon stops reading, or closes: both bound what it holds.
  const auto start = Clock::now();
  while (seconds_since(start) < 60 && deaf.send_bytes(request)) {
  }
  CHECK(seconds_since(start) < 60);
  CHECK(daemon.resident_bytes() - before < std::int64_t{400} << 20);
  const auto asked = Clock::now();
  must(get_twice(good, 16, 16));
  CHECK(seconds_since(asked) < 2);
}

TEST_CASE("clients that die in mid-frame or mid-request leave nothing behind") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client good = daemon.client();
  const auto descriptors = [&] {
    const std::filesystem::path folder = "/proc/" + std::to_string(daemon.pid()) + "/fd";
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  };
  must(get_twice(good, 16, 16));
  const auto before = descriptors();
  for (int i = 0; i < 200; ++i) {
    Client dying = daemon.client();
    if (i % 2 == 0)
      must(dying.send_bytes(header(500) + "half"));
    else
      must(dying.send(9, "get", get_fields("twice", twice(16, 16))));
  }
  const auto until = Clock::now() + std::chrono::seconds(20);
  while (daemon.status()["clients"] != 2 && Clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(daemon.status()["clients"] == 2);  // good, and the one that asks
  CHECK(descriptors() <= before + 2);
}

TEST_CASE("descriptors that nobody asked for are closed") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client client = daemon.client();
  const auto descriptors = [&] {
    const std::filesystem::path folder = "/proc/" + std::to_string(daemon.pid()) + "/fd";
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  };
  must(client.call("status"));
  const auto before = descriptors();
  for (int i = 0; i < 50; ++i) must(client.call("status", Json::object(), STDERR_FILENO));
  CHECK(descriptors() == before);
}

TEST_CASE("without descriptors it waits without spinning, and recovers when clients leave") {
  TemporaryFolder home;
  DaemonOptions options = with_twice({"--no-tune"});
  options.limits = {{RLIMIT_NOFILE, 64}};
  Daemon daemon(home.path(), options);
  {
    std::vector<Client> crowd;
    for (int i = 0; i < 200; ++i)
      if (auto client = Client::connect(daemon.socket())) crowd.push_back(std::move(*client));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    const double before = daemon.cpu_seconds();
    std::this_thread::sleep_for(std::chrono::seconds(4));
    CHECK(daemon.cpu_seconds() - before < 0.2);  // 5 %
  }
  Client client = daemon.client();
  must(get_twice(client, 16, 16));
}

TEST_CASE("more clients than the limit wait their turn") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune", "--max-clients", "4"}));
  std::vector<Client> four;
  for (int i = 0; i < 4; ++i) four.push_back(daemon.client());
  Client fifth = must(Client::connect(daemon.socket()));
  must(fifth.send(1, "hello", {{"protocol_min", 1}, {"protocol_max", 1}, {"client", "fifth"}}));
  CHECK_FALSE(fifth.receive(500));
  four.pop_back();
  CHECK(must(fifth.receive(10'000)).fields["ok"] == true);
}

TEST_CASE("another user may not connect") {
  if (::geteuid() != 0) return;  // only root can become somebody else
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  // As wide open as the file system can make it: the peer's identity decides.
  std::filesystem::permissions(home.path(), std::filesystem::perms::all);
  std::filesystem::permissions(home / "run", std::filesystem::perms(0755));
  std::filesystem::permissions(daemon.socket(), std::filesystem::perms::all);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresgid(12345, 12345, 12345) != 0 || ::setresuid(12345, 12345, 12345) != 0) ::_exit(10);
    auto client = Client::connect(daemon.socket());
    if (!client) ::_exit(11);
    ::_exit(Client::greet(daemon.socket()) ? 12 : 0);
  }
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(daemon.status()["counters"]["refused_peers"].get<int>() >= 1);
}
