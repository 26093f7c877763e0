#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "fixture.h"
#include "model/json_reader.h"

using namespace tunerd;
using namespace tunerd::testing;

namespace {

std::string slurp(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void spill(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("a file written atomically holds the bytes, old contents replaced, nothing else left") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "f";
  const std::string bytes("a\0b\xff", 4);
  must(write_file_atomically(file, "before"));
  must(write_file_atomically(file, bytes));
  CHECK(slurp(file) == bytes);
  CHECK(entries(folder.path()) == 1);
  must(write_file_atomically(file, ""));
  CHECK(slurp(file).empty());
}

TEST_CASE("a rename that fails leaves the target and no temporary") {
  const TemporaryFolder folder;
  const fs::path taken = folder.path() / "taken";
  fs::create_directories(taken / "inside");
  const Error error = error_of(write_file_atomically(taken, "bytes"));
  CHECK(error.code == Code::io);
  CHECK(error.value == taken.string());
  CHECK(fs::is_directory(taken / "inside"));
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a folder that does not exist is an io error with the file's name") {
  const TemporaryFolder folder;
  const Error error = error_of(write_file_atomically(folder.path() / "no" / "f", "x"));
  CHECK(error.code == Code::io);
  CHECK(error.message.find("No such file") != std::string::npos);
}

TEST_CASE("many threads writing one file never publish a mixture") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "shared";
  const auto contents = [](int writer) { return std::string(200'000, static_cast<char>('a' + writer)); };
  must(write_file_atomically(file, contents(0)));
  std::vector<std::thread> writers;
  std::vector<int> failures(4, 0);
  for (int writer = 0; writer < 4; ++writer)
    writers.emplace_back([&, writer] {
      for (int round = 0; round < 10; ++round)
        if (!write_file_atomically(file, contents(writer))) ++failures[static_cast<std::size_t>(writer)];
    });
  int mixed = 0;
  for (int round = 0; round < 50; ++round) {
    const std::string seen = slurp(file);
    if (seen.empty() || seen != std::string(200'000, seen[0])) ++mixed;
  }
  for (auto& writer : writers) writer.join();
  CHECK(mixed == 0);
  CHECK(failures == std::vector<int>(4, 0));
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a text file is read whole up to its limit and refused one byte past it") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "t";
  spill(file, std::string(100'000, 'x'));
  CHECK(must(read_text_file(file, 100'000)).size() == 100'000);
  const Error error = error_of(read_text_file(file, 99'999));
  CHECK(error.value == file.string());
  CHECK(error.expected == "at most 99999 bytes");
}

TEST_CASE("a missing file and a folder are io errors that name the path") {
  const TemporaryFolder folder;
  CHECK(error_of(read_text_file(folder.path() / "none")).value == (folder.path() / "none").string());
  const Error error = error_of(read_text_file(folder.path()));
  CHECK(error.code == Code::io);
  CHECK(error.message.find("directory") != std::string::npos);
}

TEST_CASE("a pipe that nobody writes to does not hang the reader; an endless device meets the limit") {
  const TemporaryFolder folder;
  const fs::path fifo = folder.path() / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(must(read_text_file(fifo)).empty());
  CHECK(error_of(read_text_file("/dev/zero", 1 << 20)).expected == "at most 1048576 bytes");
}

TEST_CASE("a pipe is read to its end although its writer is slow") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  std::thread writer([fd = ends[1]] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    [[maybe_unused]] const auto first = ::write(fd, "{\"a\":", 5);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    [[maybe_unused]] const auto second = ::write(fd, "1}", 2);
    ::close(fd);
  });
  const auto json = read_json_file("/dev/fd/" + std::to_string(ends[0]));
  writer.join();
  ::close(ends[0]);
  CHECK(must(json) == Json{{"a", 1}});
}

TEST_CASE("bad JSON names the file and the byte") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "bad.json";
  spill(file, "{\"a\": 1,}");
  const Error error = error_of(read_json_file(file));
  CHECK(error.code == Code::invalid_argument);
  CHECK(error.message == "Not JSON: " + file.string() + ", byte 9");
  spill(file, "");
  CHECK(error_of(read_json_file(file)).expected == "valid JSON");
  spill(file, "{\"a\": \"\xff\"}");
  CHECK(error_of(read_json_file(file)).expected == "valid JSON");
}

TEST_CASE("JSON nested without end is refused before it is parsed; brackets in strings do not count") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "deep.json";
  spill(file, std::string(1'000'000, '['));
  CHECK(error_of(read_json_file(file)).expected == "JSON nested at most 64 deep");
  spill(file, "[\"" + std::string(1000, '[') + "\\\"[[\"]");
  CHECK(must(read_json_file(file)).size() == 1);
  spill(file, std::string(64, '[') + std::string(64, ']'));
  CHECK(read_json_file(file).has_value());
}
