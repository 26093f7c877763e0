#include "harness/check.h"
#include "model/digest.h"

using namespace tunerd;
using namespace tunerd::test;
namespace fs = std::filesystem;

namespace {

// Tunes one problem in `home` and stops: what a container build ships.
std::string tuned_cache(const fs::path& home, std::int64_t rows) {
  Daemon daemon(home, with_twice({"--no-tune"}));
  Client client = daemon.client();
  must(tune_twice(client, rows, 1024));
  const std::string digest = must(get_twice(client, rows, 1024, "cached")).fields["kernel_digest"];
  REQUIRE(daemon.stop() == 0);
  return digest;
}

std::map<std::string, std::string> digests_of(const fs::path& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::directory_iterator(folder))
    out[entry.path().filename()] = sha256_hex(read_text(entry.path()));
  return out;
}

}  // namespace

TEST_CASE("a read-only cache is served, misses are compiled in memory, and not a byte of it changes") {
  TemporaryFolder home;
  tuned_cache(home.path(), 256);
  const auto before = digests_of(home / "cache");
  {
    Daemon daemon(home.path(), with_twice({"--read-only"}));
    Client client = daemon.client();
    CHECK(must(get_twice(client, 256, 1024, "cached")).fields["quality"] == "exact");
    const Reply miss = must(get_twice(client, 3, 1023, "now", true));
    CHECK(miss.fields["quality"] == "fallback");
    CHECK(miss.file.valid());
    CHECK(must(get_twice(client, 3, 1023)).fields["kernel_digest"] == miss.fields["kernel_digest"]);
    const Json status = daemon.status();
    CHECK(status["compile"]["compiles"] == 1);  // the second came from memory
    CHECK(status["counters"]["writes_skipped"].get<std::int64_t>() >= 1);
    CHECK(daemon.stop() == 0);
  }
  CHECK(digests_of(home / "cache") == before);
}

TEST_CASE("a base lies under a writable cache: its winners are served, what is new is written above it") {
  TemporaryFolder image, home;
  tuned_cache(image.path(), 256);
  const auto before = digests_of(image / "cache");
  {
    Daemon daemon(home.path(), with_twice({"--no-tune", "--base", (image / "cache").string()}));
    Client client = daemon.client();
    CHECK(must(get_twice(client, 256, 1024, "cached")).fields["quality"] == "exact");
    must(tune_twice(client, 512, 1024));
    CHECK(daemon.stop() == 0);
  }
  CHECK(digests_of(image / "cache") == before);
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client client = daemon.client();
  CHECK_FALSE(get_twice(client, 256, 1024, "cached"));
  // The kernel may lie in the base alone: then the miss says so, and it is compiled again.
  const auto cached = get_twice(client, 512, 1024, "cached");
  if (!cached) CHECK(contains(cached.error().text(), "kernel"));
  CHECK(must(get_twice(client, 512, 1024)).fields["quality"] == "exact");
}

TEST_CASE("a stored kernel with one flipped byte is never served: it is compiled again") {
  TemporaryFolder home;
  const std::string digest = tuned_cache(home.path(), 256);
  const fs::path database = home / "cache" / "tuning.sqlite3";
  std::string bytes = read_text(database);
  std::size_t kernels = 0;
  for (auto at = bytes.find("\x7f"
                            "ELF");
       at != std::string::npos; at = bytes.find("\x7f"
                                                "ELF",
                                                at + 1)) {
    bytes[at + 100] = static_cast<char>(bytes[at + 100] ^ 0x10);
    ++kernels;
  }
  REQUIRE(kernels > 0);
  write_text(database, bytes);
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client client = daemon.client();
  const Reply reply = must(get_twice(client, 256, 1024));
  CHECK(reply.fields["quality"] == "exact");
  CHECK(reply.fields["kernel_digest"] == digest);  // compiles are byte-identical
  CHECK(sha256_hex(reply.file.bytes()) == digest);
  CHECK(daemon.status()["compile"]["compiles"] == 1);
}

TEST_CASE("a changed template is a miss that names the template") {
  TemporaryFolder home;
  fs::copy(twice_templates(), home / "templates", fs::copy_options::recursive);
  DaemonOptions options = with_twice({"--no-tune"});
  options.templates = {home / "templates"};
  std::string variant;
  {
    Daemon daemon(home.path(), options);
    Client client = daemon.client();
    must(tune_twice(client, 256, 1024));
    variant = must(get_twice(client, 256, 1024, "cached")).fields["variant"];
    CHECK(daemon.stop() == 0);
  }
  const fs::path source = home / "templates" / "twice" / (variant.substr(0, variant.find('{')) + ".cu");
  write_text(source, read_text(source) + "\n// another text\n");
  Daemon daemon(home.path(), options);
  Client client = daemon.client();
  const Error error = must_fail(get_twice(client, 256, 1024, "cached"));
  CHECK(error.code == Code::not_found);
  CHECK(contains(error.text(), "template"));
  CHECK(must(get_twice(client, 256, 1024)).fields["quality"] == "default");
  CHECK(must(tune_twice(client, 256, 1024)).fields["state"] == "predicted");
  CHECK(must(get_twice(client, 256, 1024, "cached")).fields["quality"] == "exact");
}

TEST_CASE("another architecture's winners are no hit, and the miss says so") {
  TemporaryFolder home;
  tuned_cache(home.path(), 256);
  DaemonOptions options = with_twice({"--no-tune"});
  options.offline = "a100-sxm-80gb";
  Daemon daemon(home.path(), options);
  Client client = daemon.client();
  const Error error = must_fail(get_twice(client, 256, 1024, "cached"));
  CHECK(contains(error.text(), "sm_90a"));
  CHECK(contains(error.text(), "sm_80"));
}

TEST_CASE("a malformed database is set aside by name, and the daemon starts with an alarm") {
  TemporaryFolder home;
  tuned_cache(home.path(), 256);
  write_text(home / "cache" / "tuning.sqlite3", std::string(8192, 'x'));
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client client = daemon.client();
  CHECK(must(get_twice(client, 256, 1024)).fields["quality"] == "default");
  const Json status = daemon.status();
  REQUIRE(status["warnings"].size() >= 1);
  CHECK(contains(status["warnings"].dump(), "corrupt"));
  bool kept = false;
  for (const auto& entry : fs::directory_iterator(home / "cache"))
    kept = kept || contains(entry.path().filename(), "corrupt");
  CHECK(kept);
}

TEST_CASE("a cache that another daemon owns is refused by name of its owner") {
  TemporaryFolder home, other;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Program second(
      Daemon::binary(),
      {"--offline", "sm_90a", "--socket", (other / "run" / "tunerd.sock").string(), "--cache", daemon.cache().string()},
      Daemon::environment(with_twice()), other / "log");
  const Ended ended = second.wait(std::chrono::seconds(60));
  REQUIRE(ended.has_value());
  CHECK(*ended > 0);
  CHECK(contains(read_text(other / "log"), std::to_string(daemon.pid())));
}
