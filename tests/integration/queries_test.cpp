#include <fcntl.h>
#include <unistd.h>

#include "harness/check.h"

using namespace tunerd;
using namespace tunerd::test;

namespace {

Descriptor file_of(const std::filesystem::path& path, const std::string& bytes) {
  write_text(path, bytes);
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(file.valid());
  return file;
}

}  // namespace

TEST_CASE("what was tuned is listed, shown and explained") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client client = daemon.client();
  CHECK(must(client.call("list")).fields["winners"].empty());
  CHECK(must(client.call("explain", {{"problem", twice_problem(64, 256)}})).fields["hit"] == false);
  must(tune_twice(client, 64, 256));

  const Json winners = must(client.call("list", {{"op", "twice"}})).fields["winners"];
  REQUIRE(winners.size() == 1);
  CHECK(contains(winners[0].dump(), "twice{rows=64,cols=256,dtype=fp32,sign=plus}"));
  CHECK(must(client.call("show", {{"problem", twice_problem(64, 256)}})).fields["winner"].is_object());
  CHECK(must(client.call("explain", {{"problem", twice_problem(64, 256)}})).fields["hit"] == true);
  const Json explained = must(client.call("explain", {{"problem", twice_problem(64, 260)}})).fields;
  CHECK(explained["hit"] == false);
  REQUIRE(explained["differences"].size() == 1);
  CHECK(contains(explained["differences"][0]["field"], "cols"));
  CHECK(contains(explained["differences"][0]["there"].dump(), "256"));
  CHECK(contains(explained["differences"][0]["here"].dump(), "260"));
  CHECK(must_fail(client.call("list", {{"op", "twise"}})).suggestion == "twice");
}

TEST_CASE("a problem's variants are listed, each that is out with its reason") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client client = daemon.client();
  const Json variants = must(client.call("variants", {{"problem", twice_problem(64, 256)}})).fields["variants"];
  int valid = 0, capped = 0;
  for (const Json& entry : variants) {
    if (entry["valid"] == true) {
      ++valid;
      CHECK(entry["predicted_us"].get<double>() > 0);
    } else {
      capped += contains(entry["reason"], "at most 512 columns");
    }
  }
  CHECK(valid == 9);   // 3 × 3 less one constraint, and the fallback
  CHECK(capped == 1);  // threads=256, unroll=4
  const Json odd = must(client.call("variants", {{"problem", twice_problem(64, 255)}})).fields["variants"];
  int only = 0;
  for (const Json& entry : odd) only += entry["valid"] == true;
  CHECK(only == 1);
  CHECK(must(client.call("variants", {{"problem", twice_problem(64, 256)}, {"arch", "sm_80"}}))
            .fields["variants"]
            .size() == variants.size());
  CHECK_FALSE(client.call("variants", {{"problem", twice_problem(64, 256)}, {"arch", "sm_9000"}}));
}

TEST_CASE("status says what it runs on, what it holds and what it did") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client client = daemon.client();
  must(get_twice(client, 64, 256));
  const Json status = must(client.call("status")).fields;
  CHECK(contains(status["device_class"], "offline/sm_90a"));
  CHECK(status["device_class_fields"]["kind"] == "offline");
  CHECK(status["environment_fields"]["driver"] == "none");
  CHECK(status["uptime_s"].get<double>() >= 0);
  CHECK(status["compile"]["compiles"] == 1);
  CHECK(status["served"]["default"] == 1);
  CHECK(status["stored"]["artifacts"] == 1);
  CHECK(status["tuning"]["untuned"].empty());
}

TEST_CASE("winners travel in a bundle to another daemon, where they are exact without a compile") {
  TemporaryFolder home, other_home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client client = daemon.client();
  must(tune_twice(client, 64, 256));
  must(tune_twice(client, 65, 256));
  const Reply exported = must(client.call("export"));
  CHECK(exported.fields["winners"] == 2);
  REQUIRE(exported.file.valid());
  const std::string bundle = exported.file.bytes();
  CHECK(exported.fields["bytes"] == bundle.size());

  Daemon other(other_home.path(), with_twice({"--no-tune"}));
  Client importer = other.client();
  std::string damaged = bundle;
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
  for (const std::string& bad :
       {damaged, bundle.substr(0, bundle.size() - 1), std::string("TUNERBDL"), std::string()}) {
    const Descriptor file = file_of(other_home / "bad.bundle", bad);
    CHECK_FALSE(importer.call("import", Json::object(), file.get()));
  }
  CHECK(must(importer.call("list")).fields["winners"].empty());
  CHECK_FALSE(importer.call("import"));  // and without a file

  const Descriptor file = file_of(other_home / "good.bundle", bundle);
  CHECK(must(importer.call("import", Json::object(), file.get())).fields["imported"] == 2);
  CHECK(must(get_twice(importer, 65, 256, "cached")).fields["quality"] == "exact");
  CHECK(other.status().at("compile").at("compiles") == 0);
  CHECK(must(importer.call("import", Json::object(), file.get())).fields["imported"] == 0);
}

TEST_CASE("a subscriber is told once when the kernel of its problem changes, others are not") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client holder = daemon.client(), quiet = daemon.client(), whole_op = daemon.client(), tuner = daemon.client();
  must(holder.call("subscribe"));
  must(whole_op.call("subscribe", {{"op", "twice"}}));
  const Reply first = must(get_twice(holder, 1024, 1024));
  must(get_twice(quiet, 1024, 1024));
  must(tune_twice(tuner, 1024, 1024));
  const auto push = holder.push(kPatienceMs);
  REQUIRE(push.has_value());
  CHECK((*push)["id"] == 0);
  CHECK((*push)["type"] == "upgrade");
  CHECK((*push)["answer"]["problem"] == first.fields["problem"]);
  CHECK((*push)["answer"]["quality"] == "exact");
  CHECK((*push)["answer"]["generation"].get<std::uint64_t>() > first.fields["generation"].get<std::uint64_t>());
  CHECK(whole_op.push(kPatienceMs).has_value());
  CHECK_FALSE(quiet.push(300).has_value());
  // A problem that the holder never asked for is none of its business.
  must(tune_twice(tuner, 2048, 1024));
  CHECK(whole_op.push(kPatienceMs).has_value());
  CHECK_FALSE(holder.push(300).has_value());
  CHECK_FALSE(must_fail(holder.call("subscribe", {{"op", "twise"}})).suggestion.empty());
}

TEST_CASE("a miss is tuned in the background and pushed, without anybody asking for it") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice());
  Client client = daemon.client();
  must(client.call("subscribe"));
  const Reply first = must(get_twice(client, 768, 1024, "now", true));
  // The compile that answers is the one that tuning waits for: whichever ends first, no answer is older than its push.
  if (first.fields["quality"] != "exact") {
    CHECK(first.fields["quality"] == "default");
    CHECK(contains(first.fields["note"], "queued"));
  }
  const auto pushed = client.push(kPatienceMs);
  REQUIRE(pushed.has_value());
  CHECK((*pushed)["answer"]["quality"] == "exact");
  CHECK(must(get_twice(client, 768, 1024)).fields["quality"] == "exact");
}
