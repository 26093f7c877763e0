#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "folder.h"

using namespace tunerd;
using namespace tunerd::cache;
using namespace tunerd::cache::test;

TEST_CASE("a second owner is refused with the first one's pid, and the first is undisturbed") {
  TemporaryFolder folder;
  Store store = must_open(in(folder.path()));
  tune(store, h200(), gemm(16));
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const auto second = Store::open(in(folder.path()));
    const std::string pid = "process " + std::to_string(::getppid());
    const bool refused =
        !second && second.error().code == Code::busy && second.error().message.find(pid) != std::string::npos;
    ::_exit(refused ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  tune(store, h200(), gemm(32), "b");
  CHECK(must(store.winners(h200())).size() == 2);
}

TEST_CASE("the lock goes with its process, also when that was killed, and what was committed is there") {
  TemporaryFolder folder;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    Store store = must_open(in(folder.path()));
    tune(store, h200(), gemm(16));
    (void)!::write(ready[1], "x", 1);
    ::pause();
    ::_exit(1);
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  CHECK(fs::file_size(folder.path() / "tuning.sqlite3-wal") > 0);
  OpenOptions read_only = in(folder.path());
  read_only.read_only = true;
  const auto early = Store::open(read_only);
  REQUIRE_FALSE(early);
  CHECK(early.error().message.find("not closed cleanly") != std::string::npos);
  Store store = must_open(in(folder.path()));
  CHECK(must(store.winner(h200(), key_of(gemm(16)))).has_value());
  CHECK(must(store.get_artifact(kernel("a").kernel_key)).has_value());
}

TEST_CASE("a live foreign pid in the lock file does not matter: the lock decides") {
  TemporaryFolder folder;
  write_bytes(folder.path() / "tunerd.lock", "1\n");
  CHECK(Store::open(in(folder.path())).has_value());
}

TEST_CASE("a folder or file that others may write is refused, and the error says how to mend it") {
  TemporaryFolder folder;
  REQUIRE(::chmod(folder.path().c_str(), 0770) == 0);
  const auto group = Store::open(in(folder.path()));
  REQUIRE_FALSE(group);
  CHECK(group.error().code == Code::denied);
  CHECK(group.error().value == "mode 0770");
  CHECK(group.error().message.find("chmod") != std::string::npos);
  REQUIRE(::chmod(folder.path().c_str(), 0702) == 0);
  CHECK_FALSE(Store::open(in(folder.path())));
  REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
  { CHECK(Store::open(in(folder.path())).has_value()); }
  REQUIRE(::chmod((folder.path() / "tuning.sqlite3").c_str(), 0666) == 0);
  CHECK_FALSE(Store::open(in(folder.path())));
  CHECK_FALSE(fs::exists(folder.path() / "tuning.sqlite3.corrupt"));
}

TEST_CASE("a folder of another user is refused" * doctest::skip(::geteuid() != 0)) {
  TemporaryFolder folder;
  REQUIRE(::chown(folder.path().c_str(), 12345, 12345) == 0);
  const auto opened = Store::open(in(folder.path()));
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == Code::denied);
  CHECK(opened.error().value == "owner uid 12345");
  OpenOptions overlay = in(folder.path().string() + "-overlay");
  overlay.base = folder.path();
  CHECK_FALSE(Store::open(overlay));
}

TEST_CASE("a link or folder in the database's place is refused and left untouched") {
  TemporaryFolder folder;
  write_bytes(folder.path() / "target", "somebody's file");
  fs::create_symlink(folder.path() / "target", folder.path() / "tuning.sqlite3");
  const auto opened = Store::open(in(folder.path()));
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == Code::denied);
  CHECK(bytes_of(folder.path() / "target") == "somebody's file");
  CHECK(fs::is_symlink(folder.path() / "tuning.sqlite3"));
}

TEST_CASE("a new cache folder is made for its owner alone") {
  TemporaryFolder folder;
  const fs::path made = folder.path() / "deep" / "cache";
  Store store = must_open(in(made));
  CHECK((fs::status(made).permissions() & fs::perms::all) == fs::perms::owner_all);
}

TEST_CASE("a cache folder reached through a link works") {
  TemporaryFolder folder;
  fs::create_directory(folder.path() / "real");
  fs::create_directory_symlink(folder.path() / "real", folder.path() / "link");
  Store store = must_open(in(folder.path() / "link"));
  tune(store, h200(), gemm(16));
  CHECK(fs::exists(folder.path() / "real" / "tuning.sqlite3"));
}

TEST_CASE("a cache on NFS refuses write-ahead logging, and the message says what to do") {
  TemporaryFolder folder;
  OpenOptions options = in(folder.path());
  options.filesystem_type = [](const fs::path&) { return Result<std::int64_t>(0x6969); };
  const auto opened = Store::open(options);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == Code::unsupported);
  CHECK(opened.error().message.find("NFS") != std::string::npos);
  CHECK(opened.error().message.find("local file system") != std::string::npos);
  CHECK(opened.error().message.find("read-only base") != std::string::npos);
  CHECK_FALSE(fs::exists(folder.path() / "tuning.sqlite3"));
  CHECK(network_filesystem(0xff534d42) == "SMB");
  CHECK(network_filesystem(must(filesystem_type(folder.path()))).empty());
}

TEST_CASE("a cache folder that is a file is an error that says so") {
  TemporaryFolder folder;
  write_bytes(folder.path() / "file", "x");
  const auto opened = Store::open(in(folder.path() / "file"));
  REQUIRE_FALSE(opened);
  CHECK(opened.error().message.find((folder.path() / "file").string()) != std::string::npos);
}
