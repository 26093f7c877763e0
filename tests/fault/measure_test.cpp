#include "device.h"

using namespace tunerd;
using namespace tunerd::test;

namespace {

const std::string kFast = "threads=256,unroll=2", kGood = "threads=128,unroll=2", kSlow = "threads=64,unroll=1";

Json exhaustive_report(Client& client, std::int64_t rows, std::int64_t cols) {
  return must(client.call("tune",
                          {{"problem", twice_problem(rows, cols)},
                           {"budget", {{"variants", 100}, {"seconds", 60}, {"sol_target", 1.0}, {"patience", 100}}},
                           {"wait_ms", 120'000}}))
      .fields;
}

}  // namespace

TEST_CASE("the fastest variant that passed every gate is promoted, measured, with its time") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_faulty_device(home, {{kFast, {{"us", 20.0}}}, {kGood, {{"us", 30.0}}}}));
  Client client = daemon.client();
  const Json report = exhaustive_report(client, 1024, 4096);
  CHECK(report["state"] == "tuned");
  CHECK(report["valid"] == 9);
  CHECK(report["measured"] == 9);
  const Reply reply = must(get_twice(client, 1024, 4096, "cached"));
  CHECK(contains(reply.fields["variant"], kFast));
  CHECK(reply.fields["quality"] == "exact");
  CHECK(reply.fields["source"] == "measured");
  CHECK(reply.fields["time_us"] == 20.0);
  CHECK(reply.fields["sol_fraction"].get<double>() == doctest::Approx(reply.fields["t_sol_us"].get<double>() / 20.0));
  CHECK(must(client.call("show", {{"problem", twice_problem(1024, 4096)}})).fields["samples"].size() == 9);
}

TEST_CASE("a variant that is fast and wrong, or fast and tainted, never wins") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_faulty_device(home, {{kFast, {{"do", "wrong"}}},
                                                       {kSlow, {{"do", "tainted"}, {"us", 1.0}}},
                                                       {kGood, {{"us", 30.0}}}}));
  Client client = daemon.client();
  const Json report = exhaustive_report(client, 1024, 4096);
  CHECK(report["wrong"] == 1);
  const Reply reply = must(get_twice(client, 1024, 4096, "cached"));
  CHECK(contains(reply.fields["variant"], kGood));
  int unusable = 0;
  const Reply shown = must(client.call("show", {{"problem", twice_problem(1024, 4096)}}));
  for (const Json& sample : shown.fields["samples"])
    unusable += sample["status"] == "wrong" || sample["tainted"] == true;
  CHECK(unusable == 2);
}

TEST_CASE("a variant that breaks the device is quarantined for good; the next ones measure, the service goes on") {
  for (const std::string action : {"fault", "die", "hang"}) {
    CAPTURE(action);
    TemporaryFolder home;
    const Json plan = {{kFast, {{"do", action}}}, {kGood, {{"us", 30.0}}}};
    const std::vector<std::string> flags{"--no-tune", "--measure-deadline-s", "3"};
    {
      Daemon daemon(home.path(), with_faulty_device(home, plan, flags));
      Client client = daemon.client(), other = daemon.client();
      must(client.send(77, "tune",
                       {{"problem", twice_problem(1024, 4096)},
                        {"budget", {{"variants", 100}, {"seconds", 60}, {"sol_target", 1.0}, {"patience", 100}}},
                        {"wait_ms", 120'000}}));
      must(get_twice(other, 16, 16));  // meanwhile
      const Reply report = must(client.receive(120'000));
      CHECK(report.fields["state"] == "tuned");
      CHECK(report.fields["faulted"] == 1);
      CHECK(report.fields["measured"] == 9);
      CHECK(contains(must(get_twice(client, 1024, 4096, "cached")).fields["variant"], kGood));
      const Json listed = must(client.call("quarantine")).fields["variants"];
      REQUIRE(listed.size() == 1);
      CHECK(contains(listed[0]["variant"], kFast));
      CHECK(daemon.stop() == 0);
    }
    std::filesystem::remove(home / "plan.json.log");
    Daemon daemon(home.path(), with_faulty_device(home, plan, flags));
    Client client = daemon.client();
    const Json report = exhaustive_report(client, 1024, 4092);
    CHECK(report["state"] == "tuned");
    CHECK(report["faulted"] == 0);
    CHECK(times_measured(home, kFast) == 0);
    CHECK(times_measured(home, kGood) == 1);
  }
}

TEST_CASE("a finalist that faults when it is timed again is quarantined and does not win") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_faulty_device(
                                 home, {{kFast, {{"do", "fault_on_retime"}, {"us", 20.0}}}, {kGood, {{"us", 30.0}}}}));
  Client client = daemon.client();
  const Json report = exhaustive_report(client, 1024, 4096);
  CHECK(report["state"] == "tuned");
  CHECK(contains(must(get_twice(client, 1024, 4096, "cached")).fields["variant"], kGood));
  CHECK(must(client.call("quarantine")).fields["variants"].size() == 1);
}

TEST_CASE("when every variant is wrong nothing is promoted, and status says why") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_faulty_device(home, {{"twice", {{"do", "wrong"}}}}));
  Client client = daemon.client();
  const Json report = exhaustive_report(client, 1024, 4096);
  CHECK(report["state"] == "failed");
  CHECK(contains(report["stop_reason"], "wrong"));
  CHECK_FALSE(get_twice(client, 1024, 4096, "cached"));
  CHECK(contains(daemon.status()["tuning"]["untuned"].dump(), "cols=4096"));
}

TEST_CASE("a problem that waited for the device still gets its whole time budget") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_faulty_device(home, {{"twice", {{"us", 50.0}, {"slow_ms", 300}}}},
                                                {"--no-tune", "--budget-seconds", "4", "--budget-variants", "6"}));
  Client client = daemon.client();
  constexpr std::uint64_t kProblems = 6;  // the last waits for five times 1.8 s, over twice its budget
  for (std::uint64_t i = 1; i <= kProblems; ++i)
    must(client.send(1000 + i, "tune",
                     {{"problem", twice_problem(static_cast<std::int64_t>(64 * i), 1024)}, {"wait_ms", 80'000}}));
  for (std::uint64_t i = 1; i <= kProblems; ++i) {
    const Reply report = must(client.receive());
    CAPTURE(report.fields["stop_reason"].dump());
    CHECK(report.fields["state"] == "tuned");
    CHECK(report.fields["measured"].get<int>() >= 3);
  }
}

TEST_CASE("a problem is tuned once however many ask at once") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_faulty_device(home, {{kFast, {{"us", 20.0}}}}));
  Client client = daemon.client();
  for (std::uint64_t id = 500; id < 520; ++id)
    must(client.send(id, "tune", {{"problem", twice_problem(512, 512)}, {"wait_ms", 60'000}}));
  for (int i = 0; i < 20; ++i) CHECK(must(client.receive()).fields["state"] == "tuned");
  CHECK(times_measured(home, kFast) == 1);
}
