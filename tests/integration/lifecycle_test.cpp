#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "harness/check.h"

using namespace tunerd;
using namespace tunerd::test;
namespace fs = std::filesystem;

namespace {

struct Ran {
  Ended ended;
  std::string output;
};

// tunerd with these words, to its end.
Ran run(const TemporaryFolder& home, const std::vector<std::string>& words,
        std::map<std::string, std::string> environment = {}) {
  const fs::path log = home / "ran.log";
  fs::remove(log);
  DaemonOptions options = with_twice();
  options.environment = std::move(environment);
  Program program(Daemon::binary(), words, Daemon::environment(options), log);
  Ran ran;
  ran.ended = program.wait(std::chrono::seconds(60));
  ran.output = read_text(log);
  return ran;
}

Ran run_daemon(const TemporaryFolder& home) { return run(home, Daemon::flags(home.path(), with_twice())); }

}  // namespace

TEST_CASE("a second daemon on the socket says who runs, and disturbs nothing") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  const Ran second = run_daemon(home);
  REQUIRE(second.ended.has_value());
  CHECK(*second.ended > 0);
  CHECK(contains(second.output, "already running (pid " + std::to_string(daemon.pid()) + ")"));
  Client client = daemon.client();
  must(get_twice(client, 64, 64));
}

TEST_CASE("of many daemons started at once one survives") {
  TemporaryFolder home;
  constexpr int kAtOnce = 12;
  std::vector<Program> programs;
  for (int i = 0; i < kAtOnce; ++i) {
    programs.emplace_back(Daemon::binary(), Daemon::flags(home.path(), with_twice()), Daemon::environment(with_twice()),
                          home / ("log" + std::to_string(i)));
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(90);
  int running = kAtOnce;
  while (running > 1 && std::chrono::steady_clock::now() < until) {
    running = 0;
    for (Program& program : programs) running += !program.wait(std::chrono::milliseconds(10));
  }
  CHECK(running == 1);
  Result<Client> greeted = fail(Code::io, "not tried");
  while (!greeted && std::chrono::steady_clock::now() < until) {
    greeted = Client::greet(home / "run" / "tunerd.sock");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  REQUIRE(greeted);
  for (Program& program : programs) {
    if (const Ended ended = program.wait(std::chrono::milliseconds(0))) CHECK(*ended > 0);
  }
}

TEST_CASE("after SIGKILL the next daemon replaces the stale socket and keeps what was tuned") {
  TemporaryFolder home;
  std::vector<pid_t> orphans;
  {
    Daemon daemon(home.path(), with_twice({"--no-tune"}));
    Client client = daemon.client();
    must(tune_twice(client, 128, 128));
    orphans = daemon.children();
    CHECK_FALSE(orphans.empty());
    daemon.kill();
  }
  CHECK(fs::exists(home / "run" / "tunerd.sock"));
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client client = daemon.client();
  CHECK(must(get_twice(client, 128, 128, "cached")).fields["quality"] == "exact");
  for (const pid_t pid : orphans) CHECK_FALSE(is_running(pid));  // workers die with their daemon
}

TEST_CASE("the lock decides who runs, not the pid written in it") {
  TemporaryFolder home;
  fs::create_directories(home / "run");
  fs::permissions(home / "run", fs::perms::owner_all);
  {
    Daemon daemon(home.path(), with_twice({"--no-tune"}));
    daemon.kill();
  }
  for (const auto& entry : fs::directory_iterator(home / "run")) {
    if (entry.is_regular_file()) write_text(entry.path(), std::to_string(::getpid()) + "\n");  // a live process
  }
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  CHECK(daemon.client().hello()["pid"] == daemon.pid());
}

TEST_CASE("what is not a socket is left alone") {
  TemporaryFolder home;
  fs::create_directories(home / "run");
  fs::permissions(home / "run", fs::perms::owner_all);
  const fs::path path = home / "run" / "tunerd.sock";
  SUBCASE("a regular file") {
    write_text(path, "precious");
    CHECK(*run_daemon(home).ended > 0);
    CHECK(read_text(path) == "precious");
  }
  SUBCASE("a symbolic link") {
    write_text(home / "elsewhere", "precious");
    fs::create_symlink(home / "elsewhere", path);
    CHECK(*run_daemon(home).ended > 0);
    CHECK(fs::is_symlink(path));
    CHECK(read_text(home / "elsewhere") == "precious");
  }
}

TEST_CASE("a runtime folder that others may write is refused") {
  TemporaryFolder home;
  fs::create_directories(home / "run");
  fs::permissions(home / "run", fs::perms(0770));
  const Ran ran = run_daemon(home);
  REQUIRE(ran.ended.has_value());
  CHECK(*ran.ended > 0);
  CHECK(contains(ran.output, (home / "run").string()));
}

TEST_CASE("a runtime folder of another user is refused") {
  if (::geteuid() != 0) return;  // only root can make one
  TemporaryFolder home;
  fs::create_directories(home / "run");
  fs::permissions(home / "run", fs::perms::owner_all);
  REQUIRE(::chown((home / "run").c_str(), 12345, 12345) == 0);
  const Ran ran = run_daemon(home);
  REQUIRE(ran.ended.has_value());
  CHECK(*ran.ended > 0);
  CHECK(contains(ran.output, "12345"));
}

TEST_CASE("a socket path over 107 bytes names the limit") {
  TemporaryFolder home;
  const std::string path = (home / std::string(120, 'x')).string();
  const Ran ran = run(home, {"--offline", "sm_90a", "--socket", path, "--cache", (home / "cache").string()});
  REQUIRE(ran.ended.has_value());
  CHECK(*ran.ended > 0);
  CHECK(contains(ran.output, "107"));
}

TEST_CASE("SIGTERM ends it cleanly: exit 0, no socket, no worker left, and it can start again") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice());
  Client client = daemon.client();
  for (int rows = 1; rows <= 20; ++rows)
    must(client.send(static_cast<std::uint64_t>(rows), "get", get_fields("twice", twice(rows, 128))));
  const auto workers = daemon.children();
  CHECK_FALSE(workers.empty());
  const auto started = std::chrono::steady_clock::now();
  CHECK(daemon.stop() == 0);
  CHECK(std::chrono::steady_clock::now() - started < std::chrono::seconds(12));
  CHECK_FALSE(fs::exists(daemon.socket()));
  for (const pid_t pid : workers) CHECK_FALSE(is_running(pid));
  Daemon again(home.path(), with_twice());
  CHECK(again.stop() == 0);
}

TEST_CASE("stop answers, then the daemon ends") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice());
  Client client = daemon.client();
  must(client.call("stop"));
  CHECK(daemon.program().wait(std::chrono::seconds(20)) == 0);
  CHECK_FALSE(fs::exists(daemon.socket()));
}

TEST_CASE("--check-config prints what is in effect: flags over environment over file over defaults") {
  TemporaryFolder home;
  write_text(home / "tunerd.json",
             R"({"//": "a comment", "budget_variants": 5, "sol_target": 0.5, "strategy": "random"})");
  const std::string file = (home / "tunerd.json").string();
  const Ran ran = run(home, {"--check-config", "--config", file, "--strategy", "exhaustive"}, {{"SOL_TARGET", "0.75"}});
  REQUIRE(ran.ended.has_value());
  CHECK(*ran.ended == 0);
  const Json printed = Json::parse(ran.output, nullptr, false);
  REQUIRE(printed.is_object());
  CHECK(printed["budget_variants"] == 5);
  CHECK(printed["sol_target"] == 0.75);
  CHECK(printed["strategy"] == "exhaustive");
  CHECK_FALSE(fs::exists(home / "run"));
}

TEST_CASE("a bad configuration exits 2 and names field, value and what was expected") {
  TemporaryFolder home;
  const auto refused = [&](const std::string& document, const std::vector<std::string>& parts,
                           const std::map<std::string, std::string>& environment = {},
                           const std::vector<std::string>& flags = {}) {
    write_text(home / "tunerd.json", document);
    std::vector<std::string> words{"--check-config", "--config", (home / "tunerd.json").string()};
    words.insert(words.end(), flags.begin(), flags.end());
    const Ran ran = run(home, words, environment);
    CAPTURE(ran.output);
    REQUIRE(ran.ended.has_value());
    CHECK(*ran.ended == 2);
    for (const std::string& part : parts) CHECK(contains(ran.output, part));
  };
  refused(R"({"sol_targt": 0.9})", {"sol_targt", "did you mean sol_target"});
  refused(R"({"sol_target": 1.5})", {"sol_target", "1.5"});
  refused(R"({"workers": "two"})", {"workers", "two", "integer"});
  refused(R"({"workers": 9)", {"tunerd.json"});
  refused(R"([])", {"object"});
  refused("{}", {"SOL_TARGET", "fast", "number"}, {{"SOL_TARGET", "fast"}});
  refused("{}", {"TUNERD_BUGDET_SECONDS", "budget_seconds"}, {{"TUNERD_BUGDET_SECONDS", "1"}});
  refused("{}", {"strategy", "modle", "model"}, {}, {"--strategy", "modle"});
  refused("{}", {"--bugdet-seconds", "--budget-seconds"}, {}, {"--bugdet-seconds", "3"});
  refused("{}", {"log_level", "loud"}, {}, {"--log-level", "loud"});
}

TEST_CASE("a template folder with a typo stops the start with the file and the field") {
  TemporaryFolder home;
  fs::copy(twice_templates(), home / "templates", fs::copy_options::recursive);
  const fs::path manifest = home / "templates" / "twice" / "twice_rows.json";
  std::string text = read_text(manifest);
  text.replace(text.find("\"validity\""), 10, "\"validty\"");
  write_text(manifest, text);
  DaemonOptions options = with_twice();
  options.templates = {home / "templates"};
  Program program(Daemon::binary(), Daemon::flags(home.path(), options), Daemon::environment(options), home / "log");
  const Ended ended = program.wait(std::chrono::seconds(60));
  REQUIRE(ended.has_value());
  CHECK(*ended > 0);
  CHECK(contains(read_text(home / "log"), "validty"));
  CHECK(contains(read_text(home / "log"), "did you mean validity"));
}

TEST_CASE("--templates adds a user's folder, with nothing rebuilt") {
  TemporaryFolder home;
  DaemonOptions options =
      with_twice({"--no-tune", "--templates", (fs::path(TUNERD_SOURCE_DIR) / "docs/examples").string(), "--templates",
                  (fs::path(TUNERD_SOURCE_DIR) / "templates").string()});
  Daemon daemon(home.path(), options);
  Client client = daemon.client();
  const Reply reply = must(client.call("get", get_fields("relu", {{"rows", 512}, {"cols", 512}, {"dtype", "bf16"}})));
  CHECK(contains(reply.fields["variant"], "relu_rows{"));
  CHECK(must(get_twice(client, 64, 64)).fields["op"] == "twice");
}
