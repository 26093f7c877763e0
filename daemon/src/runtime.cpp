#include "runtime.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace tunerd::daemon {
namespace {

constexpr std::size_t kLongestPath = sizeof(sockaddr_un::sun_path) - 1;
constexpr int kBacklog = 512;

Unexpected io(const std::string& what) { return fail(Code::io, what + ": " + std::strerror(errno)); }

Status check_folder(const std::filesystem::path& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    if (errno != ENOENT) return io("Cannot make the runtime folder " + folder.string());
    TRY(check_folder(folder.parent_path()));
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
      return io("Cannot make the runtime folder " + folder.string());
  }
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    return bad_input("socket", folder.string(), "a folder to hold the socket");
  if (info.st_uid != ::geteuid() && info.st_uid != 0)
    return bad_input("socket", folder.string() + " of uid " + std::to_string(info.st_uid),
                     "a folder that belongs to uid " + std::to_string(::geteuid()));
  // A sticky folder such as /tmp lets others write, but not replace what is ours.
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (info.st_mode & S_ISVTX) == 0)
    return bad_input("socket", folder.string(), "a folder that only its owner may write (chmod go-w)");
  return {};
}

std::string pid_in(int lock) {
  char text[32] = {};
  const ssize_t got = ::pread(lock, text, sizeof text - 1, 0);
  std::string pid(text, got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!pid.empty() && (pid.back() == '\n' || pid.back() == '\0')) pid.pop_back();
  return pid.empty() ? "unknown" : pid;
}

}  // namespace

Result<Runtime> Runtime::acquire(const std::filesystem::path& socket) {
  if (socket.string().size() > kLongestPath)
    return bad_input("socket", socket.string(),
                     "a path of at most " + std::to_string(kLongestPath) + " bytes (this one has " +
                         std::to_string(socket.string().size()) + ")");
  const auto folder = socket.has_parent_path() ? socket.parent_path() : std::filesystem::path(".");
  TRY(check_folder(folder));
  Runtime runtime;
  const std::string lock_path = socket.string() + ".lock";
  runtime.lock_ = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (runtime.lock_ < 0) return io("Cannot open the lock " + lock_path);
  if (::flock(runtime.lock_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return io("Cannot lock " + lock_path);
    return fail(Code::busy, "tunerd is already running (pid " + pid_in(runtime.lock_) + ") on " + socket.string());
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(runtime.lock_, 0) != 0 || ::pwrite(runtime.lock_, pid.data(), pid.size(), 0) < 0)
    return io("Cannot write " + lock_path);

  struct stat info {};
  if (::lstat(socket.c_str(), &info) == 0) {
    if (!S_ISSOCK(info.st_mode))
      return bad_input("socket", socket.string(),
                       "nothing, or a socket: there is another file, and it is left as it is");
    if (::unlink(socket.c_str()) != 0) return io("Cannot remove the stale socket " + socket.string());
  }
  runtime.listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (runtime.listener_ < 0) return io("Cannot make a socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket.c_str(), socket.string().size());
  const mode_t mask = ::umask(0177);
  const int bound = ::bind(runtime.listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  ::umask(mask);
  if (bound != 0) return io("Cannot bind " + socket.string());
  runtime.socket_ = socket;
  if (::listen(runtime.listener_, kBacklog) != 0) return io("Cannot listen on " + socket.string());
  return runtime;
}

Runtime::Runtime(Runtime&& other) noexcept
    : socket_(std::exchange(other.socket_, {})),
      lock_(std::exchange(other.lock_, -1)),
      listener_(std::exchange(other.listener_, -1)) {}

Runtime::~Runtime() {
  if (!socket_.empty()) ::unlink(socket_.c_str());
  if (listener_ >= 0) ::close(listener_);
  if (lock_ >= 0) ::close(lock_);
}

int Runtime::release_listener() { return std::exchange(listener_, -1); }

}  // namespace tunerd::daemon
