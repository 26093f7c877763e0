#include <signal.h>

#include <chrono>
#include <thread>

#include "harness/check.h"

using namespace tunerd;
using namespace tunerd::test;
namespace fs = std::filesystem;

namespace {

DaemonOptions with_faulty_template(const std::string& which, std::vector<std::string> flags) {
  DaemonOptions options = with_twice(std::move(flags));
  options.templates.push_back(fs::path(TUNERD_SOURCE_DIR) / "tests" / "fault" / which);
  return options;
}

}  // namespace

TEST_CASE("many clients that miss on one kernel at once share one compile") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  constexpr int kClients = 50;
  std::vector<Client> clients;
  for (int i = 0; i < kClients; ++i) clients.push_back(daemon.client());
  Json fields = get_fields("twice", twice(256, 1024));
  for (Client& client : clients) must(client.send(1, "get", fields));
  std::string digest;
  for (Client& client : clients) {
    const Reply reply = must(client.receive());
    REQUIRE(reply.fields["ok"] == true);
    if (digest.empty()) digest = reply.fields["kernel_digest"];
    CHECK(reply.fields["kernel_digest"] == digest);
    CHECK(reply.file.valid());
  }
  CHECK(daemon.status()["compile"]["compiles"] == 1);
}

TEST_CASE("a template that does not compile costs the answer nothing: the next choice is served") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_faulty_template("broken", {"--no-tune"}));
  Client client = daemon.client();
  const Json variants = must(client.call("variants", {{"problem", twice_problem(256, 1024)}})).fields["variants"];
  double broken_us = 0, others_us = 1e30;
  for (const Json& entry : variants) {
    if (entry["valid"] != true) continue;
    double& best = contains(entry["variant"], "twice_broken") ? broken_us : others_us;
    best =
        &best == &broken_us ? entry["predicted_us"].get<double>() : std::min(best, entry["predicted_us"].get<double>());
  }
  REQUIRE(broken_us < others_us);  // else this test shows nothing
  const Reply reply = must(get_twice(client, 256, 1024));
  CHECK(reply.fields["quality"] == "default");
  CHECK(contains(reply.fields["variant"], "twice_rows{"));
  CHECK(daemon.status()["compile"]["failed"] == 1);
  const Json report = must(tune_twice(client, 256, 1024)).fields;
  CHECK(report["state"] == "predicted");
  CHECK(contains(report["answer"]["variant"], "twice_rows{"));
}

TEST_CASE("a compile that never ends is killed, quarantined for good, and nobody else waits for it") {
  TemporaryFolder home;
  const std::vector<std::string> flags{"--no-tune", "--compile-deadline-s", "4"};
  {
    Daemon daemon(home.path(), with_faulty_template("endless", flags));
    Client stuck = daemon.client(), other = daemon.client();
    must(stuck.send(7, "get", get_fields("twice", twice(256, 1024))));
    // Meanwhile the other worker compiles what others ask for.
    const auto start = std::chrono::steady_clock::now();
    must(get_twice(other, 3, 1021));
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(4));
    const Reply reply = must(stuck.receive());
    CHECK(reply.fields["ok"] == true);
    CHECK_FALSE(contains(reply.fields["variant"], "twice_endless"));
    const Json listed = must(other.call("quarantine")).fields["variants"];
    REQUIRE(listed.size() == 1);
    CHECK(contains(listed[0]["variant"], "twice_endless"));
    CHECK(daemon.status()["compile"]["killed"] == 1);
    CHECK(daemon.children().size() <= 2);
    CHECK(daemon.stop() == 0);
  }
  Daemon daemon(home.path(), with_faulty_template("endless", flags));
  Client client = daemon.client();
  const auto start = std::chrono::steady_clock::now();
  must(get_twice(client, 512, 1024));
  must(tune_twice(client, 512, 1024));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(4));
  CHECK(daemon.status()["compile"]["killed"] == 0);
}

TEST_CASE("a request's deadline holds while a compile hangs") {
  TemporaryFolder home;
  Daemon daemon(home.path(),
                with_faulty_template("endless", {"--no-tune", "--compile-deadline-s", "30", "--workers", "1"}));
  Client client = daemon.client();
  Json fields = get_fields("twice", twice(256, 1024));
  fields["deadline_ms"] = 1500;
  const auto start = std::chrono::steady_clock::now();
  const auto reply = client.call("get", fields);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(6));
  if (!reply) CHECK(reply.error().code == Code::deadline);
}

TEST_CASE("workers that are killed from outside are replaced") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client client = daemon.client();
  for (int round = 0; round < 3; ++round) {
    must(get_twice(client, 64, 64 << round));
    for (const pid_t pid : daemon.children()) ::kill(pid, SIGKILL);
    Json minus = twice(64, 64);
    minus["sign"] = round % 2 == 0 ? "minus" : "plus";
    must(client.call("get", get_fields("twice", minus)));
  }
  CHECK(must(client.call("quarantine")).fields["variants"].empty());
}

TEST_CASE("without a compiler what is cached is served, and a miss is a clear error") {
  TemporaryFolder home;
  {
    Daemon daemon(home.path(), with_twice({"--no-tune"}));
    Client client = daemon.client();
    must(tune_twice(client, 256, 1024));
    CHECK(daemon.stop() == 0);
  }
  DaemonOptions options = with_twice({"--no-tune"});
  options.environment["TUNERD_WORKER"] = (home / "no-such-worker").string();
  Daemon daemon(home.path(), options);
  Client client = daemon.client();
  const Reply reply = must(get_twice(client, 256, 1024, "cached"));
  CHECK(reply.fields["quality"] == "exact");
  CHECK(reply.file.valid());
  const Error error = must_fail(get_twice(client, 3, 1021));
  CHECK(contains(error.text(), "no-such-worker"));
  CHECK(daemon.status()["warnings"].size() >= 1);
}

TEST_CASE("a full disk: answers are served uncached and counted, nothing is lost") {
  TemporaryFolder home;
  {
    Daemon daemon(home.path(), with_twice({"--no-tune"}));
    Client client = daemon.client();
    must(tune_twice(client, 256, 1024));
    CHECK(daemon.stop() == 0);
  }
  // No file may grow past what the database has now; SIGXFSZ is ignored as a full disk raises no signal either.
  const auto size = fs::file_size(home / "cache" / "tuning.sqlite3");
  DaemonOptions options = with_twice({"--no-tune"});
  options.limits = {{RLIMIT_FSIZE, static_cast<rlim_t>(size)}};
  ::signal(SIGXFSZ, SIG_IGN);
  {
    Daemon daemon(home.path(), options);
    ::signal(SIGXFSZ, SIG_DFL);
    Client client = daemon.client();
    CHECK(must(get_twice(client, 256, 1024, "cached")).fields["quality"] == "exact");
    for (int i = 1; i <= 12; ++i) {
      Json problem = twice(16, 1021 + 16 * i);
      problem["sign"] = i % 2 == 0 ? "minus" : "plus";
      const Reply reply = must(client.call("get", get_fields("twice", problem)));
      CHECK(reply.file.valid());
      must(tune_twice(client, 16, 1024 + 16 * i));
      CHECK(must(get_twice(client, 16, 1024 + 16 * i)).fields["quality"] == "exact");
    }
    CHECK(daemon.status()["counters"]["store_errors"].get<int>() >= 1);
    daemon.stop();
  }
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client client = daemon.client();
  CHECK(must(get_twice(client, 256, 1024, "cached")).fields["quality"] == "exact");
  must(tune_twice(client, 99, 1024));
}
