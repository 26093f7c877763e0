// The folder of a cache: who may own it, what file system it may lie on, and the lock that makes one process its owner.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "model/result.h"

namespace tunerd::cache {

inline constexpr const char* kLockFile = "tunerd.lock";
inline constexpr const char* kDatabaseFile = "tuning.sqlite3";

// Creates `folder` (0700) when absent.
Status make_folder(const std::filesystem::path& folder);
// Owned by this user or root, and writable by no one else: a kernel planted here would run with our rights.
Status check_folder(const std::filesystem::path& folder);
// The same for the database file, which must be a plain file. Fine when absent.
Status check_file(const std::filesystem::path& file);

Result<std::int64_t> filesystem_type(const std::filesystem::path& folder);  // statfs f_type
// "NFS", "SMB"… for file systems shared over a network; empty for local ones.
std::string network_filesystem(std::int64_t type);

// flock on DIR/tunerd.lock, held for life. The pid in the file is for messages only: the lock decides.
class FolderLock {
 public:
  FolderLock() = default;
  // Code::busy when another process owns the folder or serves it read-only.
  static Result<FolderLock> own(const std::filesystem::path& folder);
  // Keeps owners out while the file is read as immutable. Without a lock file (an image may leave it out) holds
  // nothing.
  static Result<FolderLock> share(const std::filesystem::path& folder);
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  ~FolderLock();

 private:
  FolderLock(int fd, bool owner) : fd_(fd), owner_(owner) {}
  int fd_ = -1;
  bool owner_ = false;
};

}  // namespace tunerd::cache
