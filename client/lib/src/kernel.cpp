#include "kernel.h"

namespace {

// Exact and measured is the most that can be known; a near or predicted one was chosen from less.
int rank(const tunerd::wire::GetAnswer& answer) {
  using tunerd::wire::Quality;
  const int by_quality = 3 - static_cast<int>(answer.quality);
  return answer.quality == Quality::exact && answer.measured ? 4 : by_quality;
}

}  // namespace

tuner_kernel::tuner_kernel(tunerd::client::ProblemKey key, std::unique_ptr<tunerd::client::KernelState> state)
    : key_(std::move(key)), current_(state.get()), seen_generation_(state->answer().generation) {
  states_.push_back(std::move(state));
}

tuner_kernel::Swap tuner_kernel::swap(std::unique_ptr<tunerd::client::KernelState> state) {
  const std::lock_guard lock(mutex_);
  const auto& held = current_.load(std::memory_order_relaxed)->answer();
  const auto& fresh = state->answer();
  const bool risen = fresh.generation > seen_generation_.exchange(fresh.generation);
  if (held.kernel_digest == fresh.kernel_digest && held.variant == fresh.variant &&
      held.generation == fresh.generation && held.quality == fresh.quality && held.measured == fresh.measured)
    return Swap::same;
  if (!risen && rank(fresh) <= rank(held)) return Swap::kept;
  if (states_.size() == kMaxStates) return Swap::kept;
  states_.push_back(std::move(state));
  current_.store(states_.back().get(), std::memory_order_release);
  return Swap::swapped;
}

void tuner_kernel::release() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}
