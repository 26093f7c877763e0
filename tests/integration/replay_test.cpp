#include "harness/check.h"

using namespace tunerd;
using namespace tunerd::test;

namespace {

// A recording of every valid variant of one problem, the `nth` of them the fastest.
Json recording_of(const Json& variants, const std::string& problem, const std::string& fastest) {
  Json recorded = Json::object();
  for (const Json& entry : variants) {
    if (entry["valid"] != true) continue;
    const std::string variant = entry["variant"];
    const double us = variant == fastest ? 25.0 : 50.0;
    recorded[variant] = {{"status", "ok"}, {"median_us", us}, {"samples_us", {us, us, us}}, {"tainted", false}};
  }
  return {{"format", 1},
          {"device", "NVIDIA H200"},
          {"device_class",
           {{"arch", "sm_90a"},
            {"kind", "cuda"},
            {"sm_count", 132},
            {"memory_gb_per_s", 4800},
            {"mig", "none"},
            {"power_cap_w", 700}}},
          {"environment", {{"nvrtc", "13.0"}, {"driver", "580.0"}, {"flags", ""}, {"measurement_protocol", 1}}},
          {"problems", {{problem, recorded}}}};
}

}  // namespace

TEST_CASE("a replayed device is searched like a real one, and what it says is never called measured") {
  TemporaryFolder home;
  Json variants;
  {
    Daemon daemon(home.path(), with_twice({"--no-tune"}));
    variants = must(daemon.client().call("variants", {{"problem", twice_problem(256, 1024)}})).fields["variants"];
    REQUIRE(daemon.stop() == 0);
  }
  // Not the model's first choice, so that only measurements can find it.
  const Json* slowest = nullptr;
  for (const Json& entry : variants)
    if (entry["valid"] == true && (slowest == nullptr || entry["predicted_us"] > (*slowest)["predicted_us"]))
      slowest = &entry;
  REQUIRE(slowest != nullptr);
  const std::string fastest = (*slowest)["variant"];
  const std::string problem = "twice{rows=256,cols=1024,dtype=fp32,sign=plus}";
  write_text(home / "h200.recording.json", recording_of(variants, problem, fastest).dump());

  DaemonOptions options = with_twice({"--no-tune", "--replay", (home / "h200.recording.json").string(), "--strategy",
                                      "exhaustive", "--sol-target", "1.0"});
  options.offline.clear();
  Daemon daemon(home.path(), options);
  Client client = daemon.client();
  CHECK(contains(client.hello()["device_class"], "replay/sm_90a/132sm"));
  const Json report = must(tune_twice(client, 256, 1024)).fields;
  CHECK(report["state"] == "predicted");
  CHECK(report["measured"] == report["valid"]);
  const Reply reply = must(get_twice(client, 256, 1024, "cached"));
  CHECK(reply.fields["variant"] == fastest);
  CHECK(reply.fields["quality"] == "exact");
  CHECK(reply.fields["source"] == "predicted");
  CHECK(reply.fields["time_us"].is_null());
  // What was not recorded cannot be tuned, and says so.
  const Json unknown = must(tune_twice(client, 257, 1024)).fields;
  CHECK(unknown["state"] == "failed");
}

TEST_CASE("a recording that is not one stops the start with its name") {
  TemporaryFolder home;
  write_text(home / "bad.recording.json", R"({"format": 2})");
  std::vector<std::string> words = Daemon::flags(home.path(), DaemonOptions{{}, {}, {}, {}, ""});
  words.insert(words.end(), {"--replay", (home / "bad.recording.json").string()});
  Program program(Daemon::binary(), words, Daemon::environment(with_twice()), home / "log");
  const Ended ended = program.wait(std::chrono::seconds(60));
  REQUIRE(ended.has_value());
  CHECK(*ended > 0);
  CHECK(contains(read_text(home / "log"), "bad.recording.json"));
}
