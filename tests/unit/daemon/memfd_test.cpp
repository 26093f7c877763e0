#include "memfd.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>

using namespace tunerd;
using namespace tunerd::daemon;

TEST_CASE("nobody who gets a sealed file can change it") {
  const std::string bytes(100'000, 'k');
  const auto file = SealedFile::make(bytes);
  REQUIRE(file);
  const int fd = (*file)->fd();
  CHECK(::fcntl(fd, F_GET_SEALS) == (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
  CHECK(::pwrite(fd, "x", 1, 0) == -1);
  CHECK(errno == EPERM);
  CHECK(::ftruncate(fd, 1) == -1);
  CHECK(::ftruncate(fd, 1'000'000) == -1);
  CHECK(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
  const auto back = read_passed_file(::dup(fd), 1 << 20);
  REQUIRE(back);
  CHECK(*back == bytes);
}

TEST_CASE("a passed file past the limit is refused, and its descriptor closed either way") {
  const auto file = SealedFile::make(std::string(70'000, 'k'));
  REQUIRE(file);
  for (const std::int64_t limit : {69'999, 70'000}) {
    const int passed = ::dup((*file)->fd());
    const auto read = read_passed_file(passed, limit);
    CHECK(read.has_value() == (limit == 70'000));
    CHECK(::fcntl(passed, F_GETFD) == -1);
  }
}

TEST_CASE("what cannot be read is an error") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  CHECK_FALSE(read_passed_file(ends[0], 100));  // a pipe has no positions
  ::close(ends[1]);
}
