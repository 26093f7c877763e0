#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "model/json_reader.h"

namespace tunerd {
namespace {

namespace fs = std::filesystem;

Unexpected io_error(const std::string& what, const fs::path& file) {
  Error error;
  error.code = Code::io;
  error.message = "Cannot " + what + " " + file.string() + ": " + std::strerror(errno);
  error.field = "file";
  error.value = file.string();
  return Unexpected(std::move(error));
}

constexpr int kReadDeadlineMs = 10'000;  // between two pieces of a pipe; a regular file never waits

// Closes on every path; -1 is none.
struct Fd {
  int fd = -1;
  explicit Fd(int value) : fd(value) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() {
    if (fd >= 0) ::close(fd);
  }
};

Status write_all(int fd, std::string_view bytes, const fs::path& file) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return io_error("write", file);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<std::size_t> read_some(int fd, char* buffer, std::size_t size, const fs::path& file) {
  for (;;) {
    const ssize_t got = ::read(fd, buffer, size);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return io_error("read", file);
    pollfd ready{fd, POLLIN, 0};
    const int count = ::poll(&ready, 1, kReadDeadlineMs);
    if (count == 0)
      return fail(Code::deadline,
                  "Nothing came from " + file.string() + " for " + std::to_string(kReadDeadlineMs / 1000) + " seconds");
    if (count < 0 && errno != EINTR) return io_error("wait for", file);
  }
}

// Unique within the host as well as the process: two writers of one file must not share a temporary.
fs::path temporary_beside(const fs::path& file) {
  static std::atomic<unsigned> counter{0};
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  fs::path aside = file;
  aside += ".tmp." + std::to_string(::getpid()) + "." + std::to_string(counter++) + "." + std::to_string(now);
  return aside;
}

Status write_synced(const fs::path& file, std::string_view bytes) {
  Fd out(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (out.fd < 0) return io_error("create", file);
  Status status = write_all(out.fd, bytes, file);
  if (status && ::fsync(out.fd) != 0) status = io_error("sync", file);
  if (!status) ::unlink(file.c_str());
  return status;
}

}  // namespace

Result<std::string> read_text_file(const fs::path& file, std::int64_t limit_bytes) {
  Fd in(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (in.fd < 0) return io_error("open", file);
  struct stat info {};
  if (::fstat(in.fd, &info) != 0) return io_error("read", file);
  if (S_ISDIR(info.st_mode)) {
    errno = EISDIR;
    return io_error("read", file);
  }
  std::string text;
  char buffer[65536];
  for (;;) {
    TRY_ASSIGN(const std::size_t got, read_some(in.fd, buffer, sizeof buffer, file));
    if (got == 0) return text;
    if (static_cast<std::int64_t>(text.size() + got) > limit_bytes)
      return bad_input("file", file.string(), "at most " + std::to_string(limit_bytes) + " bytes");
    text.append(buffer, got);
  }
}

Result<Json> read_json_file(const fs::path& file, std::int64_t limit_bytes) {
  TRY_ASSIGN(const std::string text, read_text_file(file, limit_bytes));
  // Depth first, without recursion: the parser recurses.
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      quoted = !quoted;
    else if (!quoted && (text[i] == '{' || text[i] == '[') && ++depth > 64)
      return bad_input("file", file.string(), "JSON nested at most 64 deep");
    else if (!quoted && (text[i] == '}' || text[i] == ']'))
      --depth;
  }
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    Error out;
    out.code = Code::invalid_argument;
    out.message = "Not JSON: " + file.string() + ", byte " + std::to_string(error.byte);
    out.field = file.string();
    out.expected = "valid JSON";
    out.value = "byte " + std::to_string(error.byte);
    return Unexpected(std::move(out));
  }
}

Status write_file_atomically(const fs::path& file, std::string_view bytes) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  const fs::path aside = temporary_beside(file);
  TRY(write_synced(aside, bytes));
  if (::rename(aside.c_str(), file.c_str()) != 0) {
    auto error = io_error("rename onto", file);
    ::unlink(aside.c_str());
    return error;
  }
  Fd directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // EINVAL: a file system that has no directories to sync.
  if (directory.fd < 0 || (::fsync(directory.fd) != 0 && errno != EINVAL)) return io_error("sync", folder);
  return {};
}

}  // namespace tunerd
