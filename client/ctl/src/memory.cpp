#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "ctl/connection.h"

namespace tunerd::ctl {

Result<std::string> read_descriptor(const Descriptor& descriptor, std::int64_t limit) {
  if (!descriptor) return fail(Code::corrupt, "tunerd's reply came without the file it should carry.");
  struct stat info {};
  if (::fstat(descriptor.get(), &info) != 0) {
    return fail(Code::io, std::string("Cannot read what tunerd sent: ") + std::strerror(errno) + ".");
  }
  if (info.st_size < 0 || info.st_size > limit) {
    return fail(Code::corrupt, "tunerd sent a file of " + std::to_string(info.st_size) + " bytes; at most " +
                                   std::to_string(limit) + " are read.");
  }
  std::string bytes(std::size_t(info.st_size), '\0');
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t got = ::pread(descriptor.get(), bytes.data() + at, bytes.size() - at, off_t(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return fail(Code::io, "The file that tunerd sent ended early.");
    at += std::size_t(got);
  }
  return bytes;
}

Result<Descriptor> sealed_memory(const std::string& name, std::string_view bytes) {
  Descriptor memory(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) return fail(Code::io, std::string("Cannot make a memory file: ") + std::strerror(errno) + ".");
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t put = ::write(memory.get(), bytes.data() + at, bytes.size() - at);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return fail(Code::io, std::string("Cannot fill a memory file: ") + std::strerror(errno) + ".");
    at += std::size_t(put);
  }
  if (::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return fail(Code::io, std::string("Cannot seal a memory file: ") + std::strerror(errno) + ".");
  }
  return memory;
}

}  // namespace tunerd::ctl
