#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "fixture.h"
#include "schema.h"

using namespace tunerd;
using namespace tunerd::cache;
using namespace tunerd::cache::test;

namespace {

fs::path database(const TemporaryFolder& folder) { return folder.path() / "tuning.sqlite3"; }

std::vector<fs::path> set_aside(const TemporaryFolder& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    if (entry.path().filename().string().find(".corrupt-") != std::string::npos) found.push_back(entry.path());
  }
  return found;
}

void flip(const fs::path& file, std::size_t at) {
  std::string bytes = bytes_of(file);
  REQUIRE(at < bytes.size());
  bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
  write_bytes(file, bytes);
}

void sql(const fs::path& file, const std::string& text) {
  sqlite3* handle = nullptr;
  REQUIRE(sqlite3_open(file.c_str(), &handle) == SQLITE_OK);
  REQUIRE(sqlite3_exec(handle, text.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(handle);
}

}  // namespace

TEST_CASE("a malformed database is set aside whole under a dated name, and a fresh one started") {
  TemporaryFolder folder;
  { Store store = must_open(in(folder.path())); }
  std::string damaged;
  SUBCASE("garbage") { damaged = std::string(10'000, 'g'); }
  SUBCASE("a header and then garbage") {
    damaged = bytes_of(database(folder)).substr(0, 100) + std::string(9'000, 'z');
  }
  SUBCASE("cut off") {
    const std::string whole = bytes_of(database(folder));
    damaged = whole.substr(0, whole.size() / 2);
  }
  SUBCASE("a page in the middle overwritten") {
    damaged = bytes_of(database(folder));
    damaged.replace(4096, 4096, std::string(4096, '\xff'));
  }
  write_bytes(database(folder), damaged);
  {
    Store store = must_open(in(folder.path()));
    REQUIRE(store.warnings().size() == 1);
    const auto aside = set_aside(folder);
    REQUIRE(aside.size() == 1);
    CHECK(store.warnings()[0].find(aside[0].string()) != std::string::npos);
    CHECK(bytes_of(aside[0]) == damaged);
    tune(store, h200(), gemm(16));
    CHECK(must(store.winner(h200(), key_of(gemm(16)))).has_value());
  }
  Store store = must_open(in(folder.path()));
  CHECK(store.warnings().empty());
}

TEST_CASE("a malformed base is an error that names it, and is left as it is") {
  TemporaryFolder folder, base;
  write_bytes(base.path() / "tuning.sqlite3", std::string(10'000, 'g'));
  OpenOptions options = in(folder.path() / "cache");
  options.base = base.path();
  const auto opened = Store::open(options);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == Code::corrupt);
  CHECK(opened.error().message.find(base.path().string()) != std::string::npos);
  CHECK(fs::file_size(base.path() / "tuning.sqlite3") == 10'000);
}

TEST_CASE("a flipped byte in a stored kernel is a miss: set aside, rebuilt, the others still served") {
  TemporaryFolder folder;
  {
    Store store = must_open(in(folder.path()));
    tune(store, h200(), gemm(16), "a");
    tune(store, h200(), gemm(32), "b");
  }
  const std::size_t at = bytes_of(database(folder)).find(kernel("a").cubin.substr(1000, 64));
  REQUIRE(at != std::string::npos);
  flip(database(folder), at);
  Store store = must_open(in(folder.path()));
  CHECK(store.warnings().empty());  // the pages are sound: only the digest knows
  CHECK_FALSE(must(store.get_artifact(kernel("a").kernel_key)).has_value());
  REQUIRE(store.warnings().size() == 1);
  CHECK(store.warnings()[0].find(kernel("a").kernel_key) != std::string::npos);
  CHECK_FALSE(must(store.has_artifact(kernel("a").kernel_key)));
  CHECK(must(store.get_artifact(kernel("b").kernel_key)).has_value());
  must(store.put_artifact(kernel("a")));
  CHECK(must(store.get_artifact(kernel("a").kernel_key))->cubin == kernel("a").cubin);
}

TEST_CASE("the bytes of a kernel that failed its digest are kept for inspection") {
  TemporaryFolder folder;
  {
    Store store = must_open(in(folder.path()));
    tune(store, h200(), gemm(16), "a");
  }
  sql(database(folder), "UPDATE artifacts SET cubin = x'00ff00'");
  {
    Store store = must_open(in(folder.path()));
    CHECK_FALSE(must(store.get_artifact(kernel("a").kernel_key)).has_value());
  }
  auto raw = must(Database::open(database(folder), Database::Mode::immutable));
  CHECK(must(raw->integer("SELECT count(*) FROM artifacts_bad WHERE cubin = x'00ff00'")) == 1);
  CHECK(must(raw->integer("SELECT count(*) FROM artifacts")) == 0);
}

TEST_CASE("a winner whose recipe changed on disk is a miss, not a wrong launch") {
  TemporaryFolder folder;
  {
    Store store = must_open(in(folder.path()));
    tune(store, h200(), gemm(16));
    tune(store, h200(), gemm(32));
  }
  std::string change;
  SUBCASE("recipe") { change = "UPDATE winners SET recipe = replace(recipe, '128', '129') WHERE problem = 1"; }
  SUBCASE("time") { change = "UPDATE winners SET time_us = 0.5 WHERE problem = 1"; }
  SUBCASE("variant") { change = "UPDATE variants SET text = 'gemm_mma{bm=64}'"; }
  SUBCASE("size") { change = "UPDATE problems SET json = replace(json, '16', '17') WHERE id = 1"; }
  SUBCASE("not JSON") { change = "UPDATE winners SET recipe = '{' WHERE problem = 1"; }
  sql(database(folder), change);
  Store store = must_open(in(folder.path()));
  CHECK_FALSE(must(store.winner(h200(), key_of(gemm(16)))).has_value());
  CHECK_FALSE(store.warnings().empty());
  if (change.find("variants") == std::string::npos) CHECK(must(store.winners(h200())).size() == 1);
}

TEST_CASE("an artifact that does not have the digest it says is refused") {
  TemporaryFolder folder;
  Store store = must_open(in(folder.path()));
  Artifact artifact = kernel("a");
  artifact.cubin[7] = static_cast<char>(artifact.cubin[7] ^ 1);
  const Status put = store.put_artifact(artifact);
  REQUIRE_FALSE(put);
  CHECK(put.error().code == Code::corrupt);
  CHECK_FALSE(must(store.has_artifact(artifact.kernel_key)));
}

TEST_CASE("a database locked by another process: a bounded wait, then an error that says so") {
  TemporaryFolder folder;
  {
    Store store = must_open(in(folder.path()));
    tune(store, h200(), gemm(16));
  }
  sqlite3* other = nullptr;
  REQUIRE(sqlite3_open(database(folder).c_str(), &other) == SQLITE_OK);
  REQUIRE(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr) == SQLITE_OK);
  const auto start = std::chrono::steady_clock::now();
  const auto opened = Store::open(in(folder.path()));
  const auto waited = std::chrono::steady_clock::now() - start;
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == Code::busy);
  CHECK(opened.error().message.find("another process holds its lock") != std::string::npos);
  CHECK(waited >= std::chrono::milliseconds(kBusyTimeoutMs / 2));
  CHECK(waited < std::chrono::milliseconds(kBusyTimeoutMs * 3));
  sqlite3_close(other);
  Store store = must_open(in(folder.path()));
  CHECK(must(store.winner(h200(), key_of(gemm(16)))).has_value());
}

TEST_CASE("while the store is open no second connection can be made beside it") {
  TemporaryFolder folder;
  Store store = must_open(in(folder.path()));
  tune(store, h200(), gemm(16));
  sqlite3* other = nullptr;
  REQUIRE(sqlite3_open(database(folder).c_str(), &other) == SQLITE_OK);
  CHECK(sqlite3_exec(other, "SELECT count(*) FROM winners", nullptr, nullptr, nullptr) == SQLITE_BUSY);
  sqlite3_close(other);
  CHECK_FALSE(fs::exists(database(folder).string() + "-shm"));
}

TEST_CASE("a full cache is an io error; reads go on, nothing half-written shows, and it recovers with room") {
  TemporaryFolder folder;
  OpenOptions options = in(folder.path());
  options.max_bytes = 400'000;
  Artifact big = kernel("big", 1'000'000);
  {
    Store store = must_open(options);
    tune(store, h200(), gemm(16));
    const Status put = store.put_artifact(big);
    REQUIRE_FALSE(put);
    CHECK(put.error().code == Code::io);
    CHECK_FALSE(must(store.has_artifact(big.kernel_key)));
    CHECK(must(store.get_artifact(kernel("a").kernel_key)).has_value());
    tune(store, h200(), gemm(32), "b");
  }
  Store store = must_open(in(folder.path()));
  must(store.put_artifact(big));
  CHECK(must(store.get_artifact(big.kernel_key))->cubin == big.cubin);
}

TEST_CASE("a write that the system refuses is an io error, and the same store works again once it may write") {
  TemporaryFolder folder;
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    Store store = must_open(in(folder.path()));
    tune(store, h200(), gemm(16));
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    rlimit small = before;
    small.rlim_cur = 300'000;
    ::setrlimit(RLIMIT_FSIZE, &small);
    const Artifact big = kernel("big", 1'000'000);
    const Status refused = store.put_artifact(big);
    const bool read = store.get_artifact(kernel("a").kernel_key).value_or(std::nullopt).has_value();
    ::setrlimit(RLIMIT_FSIZE, &before);
    const Status written = store.put_artifact(big);
    const bool back = store.get_artifact(big.kernel_key).value_or(std::nullopt).has_value();
    ::_exit(refused || refused.error().code != Code::io ? 1 : !read ? 2 : !written ? 3 : !back ? 4 : 0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a database of another program is refused and left as it is") {
  TemporaryFolder folder;
  sql(database(folder), "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)");
  const std::string before = bytes_of(database(folder));
  const auto opened = Store::open(in(folder.path()));
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == Code::invalid_argument);
  CHECK(bytes_of(database(folder)) == before);
}

TEST_CASE("a newer schema is refused with both versions, and not set aside") {
  TemporaryFolder folder;
  { Store store = must_open(in(folder.path())); }
  sql(database(folder), "PRAGMA user_version = 99");
  const auto opened = Store::open(in(folder.path()));
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == Code::unsupported);
  CHECK(opened.error().message.find("99") != std::string::npos);
  CHECK(opened.error().message.find(std::to_string(migrations().size())) != std::string::npos);
  CHECK(set_aside(folder).empty());
}

TEST_CASE("an older schema is brought up to date step by step, and a step that fails leaves the step before") {
  TemporaryFolder folder;
  const fs::path file = folder.path() / "steps.sqlite3";
  const char* good[] = {"CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (1);",
                        "ALTER TABLE a ADD COLUMN y INTEGER;"};
  const char* bad[] = {good[0], good[1], "CREATE TABLE b (x INTEGER) STRICT; INSERT INTO missing VALUES (1);"};
  auto raw = must(Database::open(file, Database::Mode::owner));
  must(migrate(*raw, std::span<const char* const>(good, 1)));
  CHECK(must(raw->integer("PRAGMA user_version")) == 1);
  const Status failed = migrate(*raw, bad);
  CHECK_FALSE(failed);
  CHECK(must(raw->integer("PRAGMA user_version")) == 2);
  CHECK(must(raw->integer("SELECT count(*) FROM sqlite_schema WHERE name = 'b'")) == 0);
  must(migrate(*raw, good));
  CHECK(must(raw->integer("SELECT x FROM a WHERE y IS NULL")) == 1);
  const Status older = migrate(*raw, std::span<const char* const>(good, 1));
  REQUIRE_FALSE(older);
  CHECK(older.error().code == Code::unsupported);
  const Status behind = require_schema(*raw, bad);
  REQUIRE_FALSE(behind);
  CHECK(behind.error().message.find("open it once writable") != std::string::npos);
}
