// tuner_kernel: a counted handle to the current KernelState of one problem.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "kernel_state.h"
#include "problem_key.h"

// States are swapped by one pointer store; every state stays until the handle ends, because launches of it may still be
// running on the GPU and its facts may still be read.
struct tuner_kernel {
 public:
  tuner_kernel(tunerd::client::ProblemKey key, std::unique_ptr<tunerd::client::KernelState> state);

  const tunerd::client::ProblemKey& key() const { return key_; }
  const tunerd::client::KernelState& state() const { return *current_.load(std::memory_order_acquire); }

  enum class Swap { swapped, same, kept };
  // Takes the daemon's answer when its generation rose, or when its quality is better than what is held; a daemon that
  // knows less (a new one with an empty cache) takes nothing away. `same` when nothing differs; `kept` too when the
  // handle already holds as many states as it may (kMaxStates).
  Swap swap(std::unique_ptr<tunerd::client::KernelState> state);
  // Of the daemon's last answer, taken or not: what a push has to exceed.
  std::uint64_t seen_generation() const { return seen_generation_.load(std::memory_order_acquire); }

  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  void release();  // deletes itself with the last reference
  bool only_reference() const { return references_.load(std::memory_order_acquire) == 1; }

  static constexpr std::size_t kMaxStates = 64;

 private:
  ~tuner_kernel() = default;
  const tunerd::client::ProblemKey key_;
  std::atomic<std::int64_t> references_{1};
  std::atomic<const tunerd::client::KernelState*> current_;
  std::atomic<std::uint64_t> seen_generation_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<tunerd::client::KernelState>> states_;
};

namespace tunerd::client {

// One counted reference.
class KernelRef {
 public:
  KernelRef() = default;
  static KernelRef adopt(tuner_kernel* kernel) { return KernelRef(kernel); }
  static KernelRef share(tuner_kernel* kernel) {
    kernel->retain();
    return KernelRef(kernel);
  }
  KernelRef(KernelRef&& other) noexcept : kernel_(std::exchange(other.kernel_, nullptr)) {}
  KernelRef& operator=(KernelRef&& other) noexcept {
    std::swap(kernel_, other.kernel_);
    return *this;
  }
  KernelRef(const KernelRef&) = delete;
  KernelRef& operator=(const KernelRef&) = delete;
  ~KernelRef() {
    if (kernel_ != nullptr) kernel_->release();
  }
  tuner_kernel* get() const { return kernel_; }
  tuner_kernel* operator->() const { return kernel_; }
  tuner_kernel* detach() { return std::exchange(kernel_, nullptr); }
  explicit operator bool() const { return kernel_ != nullptr; }

 private:
  explicit KernelRef(tuner_kernel* kernel) : kernel_(kernel) {}
  tuner_kernel* kernel_ = nullptr;
};

}  // namespace tunerd::client
