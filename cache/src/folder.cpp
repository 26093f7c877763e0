#include "folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace tunerd::cache {
namespace {

namespace fs = std::filesystem;

Unexpected io_error(const std::string& what, const fs::path& path, int error) {
  const Code code = error == ENOENT ? Code::missing : error == EACCES || error == EPERM ? Code::denied : Code::io;
  return fail(code, "Cannot " + what + " " + path.string() + ": " + std::strerror(error) + ".");
}

std::string octal(unsigned mode) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%04o", mode & 07777u);
  return text.data();
}

Status check_owner(const fs::path& path, const struct stat& info, const std::string& field) {
  const auto me = ::geteuid();
  if (info.st_uid != me && info.st_uid != 0) {
    Error error{Code::denied,
                "The cache " + path.string() + " belongs to another user, who could plant kernels in it.",
                field,
                "owner uid " + std::to_string(info.st_uid),
                "owner uid " + std::to_string(me) + (me == 0 ? "" : " or root"),
                {}};
    return Unexpected(std::move(error));
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    Error error{
        Code::denied,
        "The cache " + path.string() + " may be written by others, who could plant kernels in it; chmod go-w it.",
        field,
        "mode " + octal(info.st_mode),
        "not writable by group or others",
        {}};
    return Unexpected(std::move(error));
  }
  return {};
}

std::string holder(int fd) {
  std::array<char, 32> text{};
  const ssize_t size = ::pread(fd, text.data(), text.size() - 1, 0);
  std::string pid;
  for (ssize_t i = 0; i < size && text[std::size_t(i)] >= '0' && text[std::size_t(i)] <= '9'; ++i) {
    pid += text[std::size_t(i)];
  }
  return pid.empty() ? "another process" : "process " + pid;
}

}  // namespace

Status make_folder(const fs::path& folder) {
  std::error_code error;
  if (fs::is_directory(folder, error)) return {};
  if (const fs::path parent = fs::absolute(folder).lexically_normal().parent_path(); !parent.empty()) {
    fs::create_directories(parent, error);
    if (error) return io_error("create the folder", parent, error.value());
  }
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return io_error("create the cache folder", folder, errno);
  return {};
}

Status check_folder(const fs::path& folder) {
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) return io_error("open the cache folder", folder, errno);
  if (!S_ISDIR(info.st_mode)) {
    return fail(Code::invalid_argument, "The cache " + folder.string() + " is not a folder.");
  }
  return check_owner(folder, info, "cache folder");
}

Status check_file(const fs::path& file) {
  struct stat info {};
  if (::lstat(file.c_str(), &info) != 0) {
    if (errno == ENOENT) return {};
    return io_error("open the cache file", file, errno);
  }
  if (!S_ISREG(info.st_mode)) {
    return fail(Code::denied, "The cache file " + file.string() + " is not a plain file; it is left as it is.");
  }
  return check_owner(file, info, "cache file");
}

Result<std::int64_t> filesystem_type(const fs::path& folder) {
  struct statfs info {};
  if (::statfs(folder.c_str(), &info) != 0) return io_error("ask for the file system of", folder, errno);
  return std::int64_t(info.f_type) & 0xffffffff;
}

std::string network_filesystem(std::int64_t type) {
  switch (type & 0xffffffff) {
    case 0x6969:
      return "NFS";
    case 0x517b:
    case 0xff534d42:
    case 0xfe534d42:
      return "SMB";
    case 0x0bd00bd0:
      return "Lustre";
    case 0x47504653:
      return "GPFS";
    case 0x00c36400:
      return "Ceph";
    case 0x5346414f:
      return "AFS";
    case 0x73757245:
      return "Coda";
    default:
      return {};
  }
}

Result<FolderLock> FolderLock::own(const fs::path& folder) {
  const fs::path file = folder / kLockFile;
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return io_error("open the lock file", file, errno);
  FolderLock lock(fd, false);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return io_error("lock", file, errno);
    return fail(Code::busy, "The cache " + folder.string() + " is in use by " + holder(fd) +
                                ": stop it first, go through its socket, or name another folder.");
  }
  lock.owner_ = true;
  // Failing to write the pid (a full disk) costs only the message.
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd, 0) == 0) [[maybe_unused]]
    const ssize_t written = ::pwrite(fd, pid.data(), pid.size(), 0);
  return lock;
}

Result<FolderLock> FolderLock::share(const fs::path& folder) {
  const fs::path file = folder / kLockFile;
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) {
    if (errno == ENOENT || errno == EACCES) return FolderLock();
    return io_error("open the lock file", file, errno);
  }
  FolderLock lock(fd, false);
  if (::flock(fd, LOCK_SH | LOCK_NB) != 0) {
    // A file system without locks cannot have an owner either.
    if (errno != EWOULDBLOCK) return FolderLock();
    return fail(Code::busy, "The cache " + folder.string() + " is being written by " + holder(fd) +
                                ", so it cannot be served read-only; stop it first.");
  }
  return lock;
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), owner_(std::exchange(other.owner_, false)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(owner_, other.owner_);
  return *this;
}

FolderLock::~FolderLock() {
  if (fd_ < 0) return;
  // A pid left behind would be blamed for a lock that someone else holds.
  if (owner_) [[maybe_unused]]
    const int emptied = ::ftruncate(fd_, 0);
  ::close(fd_);
}

}  // namespace tunerd::cache
