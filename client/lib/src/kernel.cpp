#include "kernel.h"

tuner_kernel::tuner_kernel(tunerd::client::ProblemKey key, std::unique_ptr<tunerd::client::KernelState> state)
    : key_(std::move(key)), current_(state.get()) {
  states_.push_back(std::move(state));
}

tuner_kernel::Swap tuner_kernel::swap(std::unique_ptr<tunerd::client::KernelState> state) {
  const std::lock_guard lock(mutex_);
  const auto& held = current_.load(std::memory_order_relaxed)->answer();
  const auto& fresh = state->answer();
  if (held.kernel_digest == fresh.kernel_digest && held.variant == fresh.variant &&
      held.generation == fresh.generation && held.quality == fresh.quality && held.measured == fresh.measured)
    return Swap::same;
  if (states_.size() == kMaxStates) return Swap::full;
  states_.push_back(std::move(state));
  current_.store(states_.back().get(), std::memory_order_release);
  return Swap::swapped;
}

void tuner_kernel::release() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}
