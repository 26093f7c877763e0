#include "memfd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace tunerd::daemon {

Result<std::shared_ptr<const SealedFile>> SealedFile::make(std::string_view bytes) {
  std::shared_ptr<SealedFile> file(new SealedFile());
  file->fd_ = ::memfd_create("tunerd-kernel", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file->fd_ < 0) return fail(Code::io, std::string("Cannot make a memory file: ") + std::strerror(errno));
  while (!bytes.empty()) {
    const ssize_t written = ::write(file->fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail(Code::io, std::string("Cannot fill a memory file: ") + std::strerror(errno));
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fcntl(file->fd_, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0)
    return fail(Code::io, std::string("Cannot seal a memory file: ") + std::strerror(errno));
  return std::shared_ptr<const SealedFile>(std::move(file));
}

SealedFile::~SealedFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<std::string> read_passed_file(int fd, std::int64_t limit_bytes) {
  std::string bytes;
  char buffer[65536];
  off_t at = 0;
  for (;;) {
    const ssize_t got = ::pread(fd, buffer, sizeof buffer, at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || static_cast<std::int64_t>(bytes.size()) + got > limit_bytes) {
      const std::string why = got < 0 ? std::strerror(errno) : "";
      ::close(fd);
      if (got < 0) return fail(Code::io, "Cannot read the file that was passed: " + why);
      if (got == 0) return bytes;
      return bad_input("file", "more than " + std::to_string(limit_bytes) + " bytes",
                       "at most " + std::to_string(limit_bytes) + " bytes");
    }
    bytes.append(buffer, static_cast<std::size_t>(got));
    at += got;
  }
}

}  // namespace tunerd::daemon
