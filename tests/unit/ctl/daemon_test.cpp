#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <map>
#include <thread>

#include "cache/bundle.h"
#include "ctl/connection.h"
#include "fixture.h"
#include "model/digest.h"
#include "wire/frame.h"
#include "wire/messages.h"

using namespace tunerd;
using namespace tunerd::ctl;
using namespace tunerd::ctl::test;

namespace {

// A scripted peer that speaks the protocol over a real socket, to see what tunerctl makes of each answer.
class Peer {
 public:
  struct Answer {
    Result<Json> fields = Json::object();
    std::string bytes;  // passed as a sealed memfd when not empty
  };
  using Script = std::function<Answer(const Json& request, int fd)>;

  explicit Peer(Script script) : script_(std::move(script)) {
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_ = folder_ / "s";
    path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    REQUIRE(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    REQUIRE(::listen(listener_, 4) == 0);
    thread_ = std::thread([this] { serve(); });
  }
  ~Peer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }

  const std::string& path() const { return path_; }
  Ran run(std::vector<std::string> words) {
    words.insert(words.begin(), {"--socket", path_});
    return tunerctl(std::move(words));
  }

 private:
  void serve() {
    while (true) {
      const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) return;
      while (true) {
        int fd = -1;
        auto request = wire::receive_frame(socket, wire::kMaxRequestBytes, &fd, 20'000);
        if (!request) break;
        reply(socket, *request, fd);
        if (fd >= 0) ::close(fd);
      }
      ::close(socket);
    }
  }

  void reply(int socket, const Json& request, int fd) {
    const auto id = request["id"].get<std::uint64_t>();
    if (request["type"] == "hello") {
      (void)wire::send_frame(socket, wire::ok_reply(id, {{"protocol", 1}}));
      (void)wire::send_frame(socket, {{"id", 0}, {"type", "upgrade"}});  // a push, which is nobody's reply
      return;
    }
    Answer answer = script_(request, fd);
    const Json body = answer.fields ? wire::ok_reply(id, *answer.fields) : wire::error_reply(id, answer.fields.error());
    if (answer.bytes.empty()) {
      (void)wire::send_frame(socket, body);
    } else {
      auto memory = sealed_memory("test", answer.bytes);
      if (memory) (void)wire::send_frame(socket, body, memory->get());
    }
  }

  Script script_;
  TemporaryFolder folder_;
  std::string path_;
  int listener_ = -1;
  std::thread thread_;
};

wire::GetAnswer answer_for(const std::string& cubin) {
  wire::GetAnswer answer;
  answer.op = "scale";
  answer.problem = "scale{rows=8,cols=8,dtype=fp32,sign=plus}";
  answer.variant = "scale_rows{threads=64}";
  answer.quality = wire::Quality::exact;
  answer.measured = true;
  answer.sol.flops = 64;
  answer.sol.bytes = 512;
  answer.sol.t_sol_us = answer.sol.t_memory_us = 2;
  answer.sol.bound = "memory";
  answer.time_us = 2.5;
  answer.sol_fraction = 0.8;
  answer.device_class = "cuda/sm_90a/132sm/4800GBps/mig=none/700W";
  answer.arch = "sm_90a";
  answer.generation = 3;
  answer.kernel_digest = sha256_hex(cubin);
  answer.cubin_bytes = std::int64_t(cubin.size());
  answer.problem_json = {{"op", "scale"}, {"dims", {{"rows", 8}, {"cols", 8}}}};
  answer.recipe.entry = "scale_rows";
  answer.recipe.launch.grid = {must(Expr::parse("rows")), Expr(1), Expr(1)};
  answer.recipe.launch.block = {64, 1, 1};
  return answer;
}

Unexpected error(Code code, const std::string& message) { return fail(code, message); }

Json report_of(const Json& request, const std::string& state) {
  wire::TuneReport report;
  report.problem = "scale{rows=" + request["problem"]["rows"].dump() + "}";
  report.state = state;
  report.answer = answer_for("kernel");
  return wire::to_json(report);
}

}  // namespace

TEST_CASE("get sends the problem as written, prints the keys that scripts rely on, and writes the kernel") {
  TemporaryFolder folder;
  Json seen;
  Peer peer([&](const Json& request, int) {
    seen = request;
    return Peer::Answer{wire::to_json(answer_for("kernel bytes")), "kernel bytes"};
  });
  const std::string file = folder / "k.cubin";
  const Ran ran = peer.run({"get", "scale", "rows=8", "cols=8", "dtype=fp32", "--wait", "tuned", "--deadline-ms",
                            "1234", "--cubin", file, "--no-tune", "--json"});
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  CHECK(seen["op"] == "scale");
  CHECK(seen["fields"] == Json{{"rows", 8}, {"cols", 8}, {"dtype", "fp32"}});
  CHECK(seen["wait"] == "tuned");
  CHECK(seen["deadline_ms"] == 1234);
  CHECK(seen["tune"] == false);
  const Json json = ran.json();
  for (const char* key : {"op", "problem", "variant", "quality", "source", "t_sol_us", "time_us", "sol_fraction",
                          "cubin_bytes", "launch", "arguments"}) {
    CHECK_MESSAGE(json.contains(key), key);
  }
  CHECK(json["quality"] == "exact");
  CHECK(json["source"] == "measured");
  CHECK(read_text(file) == "kernel bytes");
  const Ran human = peer.run({"get", "scale", "rows=8", "cols=8"});
  CHECK(human.out.find("grid 8,1,1") != std::string::npos);
  CHECK(human.out.find("exact, measured, generation 3") != std::string::npos);
}

TEST_CASE("a kernel that is not the one the answer speaks of is refused, and no file is written") {
  TemporaryFolder folder;
  Peer peer([](const Json&, int) { return Peer::Answer{wire::to_json(answer_for("kernel bytes")), "other bytes"}; });
  const Ran ran = peer.run({"get", "scale", "rows=8", "--cubin", folder / "k.cubin"});
  CHECK(ran.code == kFailed);
  CHECK(ran.err.find("kernel_digest") != std::string::npos);
  CHECK_FALSE(fs::exists(folder / "k.cubin"));
}

TEST_CASE(
    "the daemon's errors reach the user with field, value, expectation and suggestion, and an exit code of their "
    "kind") {
  Peer peer([](const Json& request, int) -> Peer::Answer {
    if (request["type"] == "get" && request["wait"] == "cached")
      return {error(Code::not_found, "a miss: m differs"), ""};
    if (request["type"] == "get") return {bad_input("m", "0", "1 to 2147483648", "n"), ""};
    return {error(Code::denied, "only the daemon's user may stop it"), ""};
  });
  const Ran bad = peer.run({"get", "gemm", "m=0"});
  CHECK(bad.code == kUsage);
  CHECK(bad.err.find("did you mean n") != std::string::npos);
  CHECK(peer.run({"get", "gemm", "m=1", "--wait", "cached"}).code == kMiss);
  const Ran denied = peer.run({"stop", "--json"});
  CHECK(denied.code == kFailed);
  CHECK(Json::parse(denied.err)["error"]["code"] == "denied");
  CHECK(peer.run({"get", "gemm", "m=1", "--wait", "tomorow"}).code == kUsage);
  CHECK(peer.run({"get", "gemm", "m=1", "--deadline-ms", "0"}).code == kUsage);
}

TEST_CASE("without a daemon the exit code is 5, and a path too long for a socket is an error that names the limit") {
  CHECK(tunerctl({"--socket", "/nonexistent/s", "status"}).code == kNoDaemon);
  const Ran too_long = tunerctl({"--socket", "/" + std::string(120, 'x'), "status"});
  CHECK(too_long.code == kUsage);
  CHECK(too_long.err.find("107") != std::string::npos);
}

TEST_CASE("sweep asks again while pending or busy, lists failures last and exits with 3") {
  TemporaryFolder folder;
  write_text(folder / "shapes.json",
             R"([{"op":"scale","rows":1},{"op":"scale","rows":2},{"op":"scale","rows":3},{"op":"scale","rows":4}])");
  std::map<int, int> asked;
  Peer peer([&](const Json& request, int) -> Peer::Answer {
    const int rows = request["problem"]["rows"].get<int>();
    const int times = ++asked[rows];
    if (rows == 1) return {report_of(request, "already"), ""};
    if (rows == 2) return {report_of(request, times < 3 ? "pending" : "tuned"), ""};
    if (rows == 3 && times < 2) return {error(Code::busy, "the queue is full"), ""};
    if (rows == 3) return {report_of(request, "tuned"), ""};
    return {bad_input("rows", "4", "something else"), ""};
  });
  const Ran ran = peer.run({"sweep", folder / "shapes.json", "--json", "--concurrency", "2", "--budget-seconds", "5"});
  CHECK(ran.code == kSomeFailed);
  const Json reports = ran.json();
  REQUIRE(reports.size() == 4);
  CHECK(reports[0]["state"] == "already");
  CHECK(reports[1]["state"] == "tuned");
  CHECK(reports[2]["state"] == "tuned");
  CHECK(reports[3]["state"] == "failed");
  CHECK(reports[3]["error"]["field"] == "rows");
  CHECK(asked[2] == 3);
  CHECK(asked[3] == 2);
  CHECK(ran.err.find("[4/4]") != std::string::npos);
  const Ran human = peer.run({"sweep", folder / "shapes.json"});
  CHECK(human.code == kSomeFailed);
  CHECK(human.out.find("1 of 4 failed:\n  scale rows=4: ") != std::string::npos);
  write_text(folder / "good.json", R"([{"op":"scale","rows":1}])");
  CHECK(peer.run({"sweep", folder / "good.json"}).code == 0);
  CHECK(peer.run({"sweep", folder / "good.json", "--sol-target", "1.5"}).code == kUsage);
  CHECK(peer.run({"sweep", folder / "absent.json"}).code != 0);
}

TEST_CASE("Ctrl-C ends a sweep between two answers: what is done is reported, and the exit code is 130") {
  TemporaryFolder folder;
  write_text(folder / "shapes.json", R"([{"op":"scale","rows":1},{"op":"scale","rows":2},{"op":"scale","rows":3}])");
  std::atomic<pid_t> child{0};
  Peer peer([&](const Json& request, int) -> Peer::Answer {
    if (request["problem"]["rows"] == 1) return {report_of(request, "tuned"), ""};
    while (child == 0) ::usleep(1000);
    ::kill(child, SIGINT);
    return {report_of(request, "pending"), ""};
  });
  const std::string program = TUNERD_BINARY_DIR "/bin/tunerctl", out = folder / "out", shapes = folder / "shapes.json";
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    const int file = ::open(out.c_str(), O_CREAT | O_WRONLY, 0600);
    ::dup2(file, STDOUT_FILENO);
    ::dup2(file, STDERR_FILENO);
    ::execl(program.c_str(), "tunerctl", "--socket", peer.path().c_str(), "sweep", shapes.c_str(), "--concurrency", "1",
            nullptr);
    ::_exit(127);
  }
  child = pid;
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == kInterrupted);
  const std::string printed = read_text(out);
  CHECK(printed.find("scale{rows=1}") != std::string::npos);
  CHECK(printed.find("1 of 3 done; the same command goes on from here") != std::string::npos);
}

TEST_CASE("export checks the bundle before it writes the file; import passes it on sealed") {
  TemporaryFolder folder;
  const std::string bundle = cache::encode_bundle({"2025-01-01T00:00:00Z", "test", {}});
  std::string received;
  bool broken = false;
  Peer peer([&](const Json& request, int fd) -> Peer::Answer {
    if (request["type"] == "export") return {Json{{"winners", 0}}, broken ? bundle.substr(1) : bundle};
    received.resize(bundle.size() + 10);
    const ssize_t size = ::pread(fd, received.data(), received.size(), 0);
    received.resize(std::size_t(size > 0 ? size : 0));
    return {Json{{"imported", 3}, {"kept", 1}, {"skipped", Json::array()}}, ""};
  });
  REQUIRE(peer.run({"export", folder / "a.bundle"}).code == 0);
  CHECK(read_text(folder / "a.bundle") == bundle);
  CHECK(peer.run({"import", folder / "a.bundle", "--json"}).json()["imported"] == 3);
  CHECK(received == bundle);
  broken = true;
  CHECK(peer.run({"export", folder / "b.bundle"}).code == kFailed);
  CHECK_FALSE(fs::exists(folder / "b.bundle"));
  write_text(folder / "c.bundle", "not a bundle");
  received.clear();
  CHECK(peer.run({"import", folder / "c.bundle"}).code == kFailed);
  CHECK(received.empty());
}

TEST_CASE("list, show, explain, quarantine and status print what the daemon says") {
  Peer peer([](const Json& request, int) -> Peer::Answer {
    const std::string type = request["type"];
    if (type == "list")
      return {Json{{"winners", {{{"problem", "p1"}, {"variant", "v1"}, {"time_us", 2.5}, {"source", "measured"}}}}},
              ""};
    if (type == "explain") {
      return {Json{{"hit", false},
                   {"nearest_key", "p1"},
                   {"differences", {{{"field", "m"}, {"there", "16"}, {"here", "17"}}}}},
              ""};
    }
    if (type == "show")
      return {Json{{"winner", nullptr}, {"samples", {{{"variant", "v2"}, {"median_us", 3}, {"status", "wrong"}}}}}, ""};
    if (type == "quarantine")
      return {Json{{"variants", {{{"variant", "v3"}, {"problem", ""}, {"reason", "never ends"}}}}}, ""};
    return {Json{{"queue", {{"pending", 4}}}}, ""};
  });
  CHECK(peer.run({"list"}).out.find("p1       v1") != std::string::npos);
  CHECK(peer.run({"explain", "gemm", "m=17"}).out.find("m: 16 there, 17 here") != std::string::npos);
  CHECK(peer.run({"show", "gemm", "m=17"}).out.find("wrong") != std::string::npos);
  CHECK(peer.run({"quarantine"}).out.find("never ends") != std::string::npos);
  CHECK(peer.run({"status"}).out.find("pending: 4") != std::string::npos);
  CHECK(peer.run({"explain", "gemm", "m=17", "--json"}).json()["differences"][0]["field"] == "m");
}
