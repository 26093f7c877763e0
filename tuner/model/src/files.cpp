#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
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

Status write_synced(const fs::path& file, std::string_view bytes) {
  Fd out(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (out.fd < 0) return io_error("create", file);
  TRY(write_all(out.fd, bytes, file));
  if (::fsync(out.fd) != 0) return io_error("sync", file);
  return {};
}

}  // namespace

Result<std::string> read_text_file(const fs::path& file, std::int64_t limit_bytes) {
  Fd in(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
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
    const ssize_t got = ::read(in.fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error("read", file);
    if (got == 0) return text;
    if (static_cast<std::int64_t>(text.size()) + got > limit_bytes)
      return bad_input("file", file.string(), "at most " + std::to_string(limit_bytes) + " bytes");
    text.append(buffer, static_cast<std::size_t>(got));
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
  fs::path aside = file;
  aside += ".tmp." + std::to_string(::getpid());
  ::unlink(aside.c_str());
  if (auto written = write_synced(aside, bytes); !written) {
    ::unlink(aside.c_str());
    return written;
  }
  if (::rename(aside.c_str(), file.c_str()) != 0) {
    auto error = io_error("rename onto", file);
    ::unlink(aside.c_str());
    return error;
  }
  Fd directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.fd < 0 || ::fsync(directory.fd) != 0) return io_error("sync", folder);
  return {};
}

}  // namespace tunerd
