#include <sys/mount.h>
#include <unistd.h>

#include "fixture.h"

using namespace tunerd;
using namespace tunerd::cache;
using namespace tunerd::cache::test;

namespace {

OpenOptions over(const fs::path& base, const fs::path& folder) {
  OpenOptions options = in(folder);
  options.base = base;
  return options;
}

OpenOptions read_only(const fs::path& folder) {
  OpenOptions options = in(folder);
  options.read_only = true;
  return options;
}

}  // namespace

TEST_CASE("reads fall through to the base, writes never touch it, and the overlay's row wins") {
  TemporaryFolder base, overlay;
  {
    Store store = must_open(in(base.path()));
    tune(store, h200(), gemm(16), "shipped", 20);
    tune(store, h200(), gemm(32), "shipped", 30);
    must(store.quarantine({"gemm_mma{bm=1}", "d", "", h200().device_class.key(), "endless", ""}));
  }
  const std::string before = bytes_of(base.path() / "tuning.sqlite3");
  {
    Store store = must_open(over(base.path(), overlay.path()));
    auto shipped = must(store.winner(h200(), key_of(gemm(16))));
    REQUIRE(shipped.has_value());
    CHECK(shipped->from_base);
    CHECK(must(store.get_artifact(kernel("shipped").kernel_key)).has_value());
    CHECK(must(store.has_artifact(kernel("shipped").kernel_key)));
    CHECK(must(store.samples(h200(), key_of(gemm(16)))).size() == 1);
    CHECK(must(store.quarantined(h200().device_class.key())).size() == 1);

    tune(store, h200(), gemm(16), "ours", 10);
    tune(store, h200(), gemm(64), "ours", 40);
    const auto ours = must(store.winner(h200(), key_of(gemm(16))));
    CHECK_FALSE(ours->from_base);
    CHECK(ours->time_us == 10);
    CHECK(ours->generation == shipped->generation + 1);
    CHECK(must(store.samples(h200(), key_of(gemm(16)))).size() == 2);
    CHECK(must(store.winners(h200())).size() == 3);
    const Counts counts = must(store.counts());
    CHECK(counts.winners == 3);
    CHECK(counts.artifacts == 2);
    CHECK(counts.samples == 4);
    CHECK(counts.quarantined == 1);
  }
  CHECK(bytes_of(base.path() / "tuning.sqlite3") == before);
  Store alone = must_open(in(overlay.path()));
  CHECK(must(alone.winners(h200())).size() == 2);
}

TEST_CASE("a damaged kernel in the base is a miss until the overlay has its own") {
  TemporaryFolder base, overlay;
  {
    Store store = must_open(in(base.path()));
    tune(store, h200(), gemm(16), "a");
  }
  std::string bytes = bytes_of(base.path() / "tuning.sqlite3");
  const std::size_t at = bytes.find(kernel("a").cubin.substr(500, 64));
  REQUIRE(at != std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  write_bytes(base.path() / "tuning.sqlite3", bytes);
  Store store = must_open(over(base.path(), overlay.path()));
  CHECK_FALSE(must(store.get_artifact(kernel("a").kernel_key)).has_value());
  CHECK(store.warnings().size() == 1);
  must(store.put_artifact(kernel("a")));
  CHECK(must(store.get_artifact(kernel("a").kernel_key)).has_value());
  CHECK(bytes_of(base.path() / "tuning.sqlite3") == bytes);
}

TEST_CASE("a closed cache is one file, with nothing left in a log") {
  TemporaryFolder folder;
  {
    Store store = must_open(in(folder.path()));
    tune(store, h200(), gemm(16));
  }
  CHECK_FALSE(fs::exists(folder.path() / "tuning.sqlite3-wal"));
  CHECK_FALSE(fs::exists(folder.path() / "tuning.sqlite3-shm"));
}

TEST_CASE("a read-only cache serves every hit, refuses every write, and changes no byte of its folder") {
  TemporaryFolder folder;
  {
    Store store = must_open(in(folder.path()));
    tune(store, h200(), gemm(16));
  }
  fs::remove(folder.path() / "tunerd.lock");  // as an image may ship it
  const std::string before = bytes_of(folder.path() / "tuning.sqlite3");
  {
    Store store = must_open(read_only(folder.path()));
    Store beside = must_open(read_only(folder.path()));
    for (Store* reader : {&store, &beside}) {
      CHECK(must(reader->winner(h200(), key_of(gemm(16)))).has_value());
      CHECK(must(reader->get_artifact(kernel("a").kernel_key)).has_value());
      CHECK(must(reader->counts()).winners == 1);
    }
    const Winner winner = winner_of(gemm(32), kernel("b"));
    const auto denied = [](const Status& status) { return !status && status.error().code == Code::denied; };
    CHECK(denied(store.put_artifact(kernel("b"))));
    CHECK(denied(store.put_winner(h200(), winner)));
    CHECK(denied(store.add_sample(h200(), winner.problem, winner.problem_key, sample_of(winner))));
    CHECK(denied(store.quarantine({"v", "d", "", "", "why", ""})));
    const auto imported = import_bundle(store, Bundle{});
    REQUIRE_FALSE(imported);
    CHECK(imported.error().code == Code::denied);
  }
  CHECK(bytes_of(folder.path() / "tuning.sqlite3") == before);
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("a read-only cache keeps an owner out, and an owner keeps readers out") {
  TemporaryFolder folder;
  {
    Store owner = must_open(in(folder.path()));
    const auto reader = Store::open(read_only(folder.path()));
    REQUIRE_FALSE(reader);
    CHECK(reader.error().code == Code::busy);
  }
  Store reader = must_open(read_only(folder.path()));
  const auto owner = Store::open(in(folder.path()));
  REQUIRE_FALSE(owner);
  CHECK(owner.error().code == Code::busy);
}

TEST_CASE("a folder without a cache cannot be a base or be served read-only, and a cache is not its own base") {
  TemporaryFolder folder, empty;
  const auto base = Store::open(over(empty.path(), folder.path()));
  REQUIRE_FALSE(base);
  CHECK(base.error().code == Code::missing);
  CHECK(base.error().message.find(empty.path().string()) != std::string::npos);
  CHECK_FALSE(Store::open(read_only(empty.path())));
  CHECK_FALSE(Store::open(read_only(folder.path() / "absent")));
  const auto own = Store::open(over(folder.path(), folder.path()));
  REQUIRE_FALSE(own);
  CHECK(own.error().field == "cache base");
}

TEST_CASE("a cache on a file system mounted read-only is served" * doctest::skip(::geteuid() != 0)) {
  TemporaryFolder folder;
  {
    Store store = must_open(in(folder.path()));
    tune(store, h200(), gemm(16));
  }
  // Mounting needs more than root in most containers; then the test above (no byte changed) is what there is.
  if (::mount(folder.path().c_str(), folder.path().c_str(), nullptr, MS_BIND, nullptr) != 0) {
    MESSAGE("this container may not mount; skipped");
    return;
  }
  if (::mount(nullptr, folder.path().c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0) {
    Store store = must_open(read_only(folder.path()));
    CHECK(must(store.winner(h200(), key_of(gemm(16)))).has_value());
  }
  ::umount(folder.path().c_str());
}
