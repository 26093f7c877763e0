#include "search/strategy.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "search/learned.h"

namespace tunerd {
namespace {

// These walk a fixed order; they differ in which.
class Ordered : public Strategy {
 public:
  explicit Ordered(std::vector<std::size_t> order) : order_(std::move(order)) {}

  std::vector<std::size_t> propose(std::size_t count) override {
    const std::size_t end = next_ + std::min(count, order_.size() - next_);
    std::vector<std::size_t> proposed(order_.begin() + static_cast<std::ptrdiff_t>(next_),
                                      order_.begin() + static_cast<std::ptrdiff_t>(end));
    next_ = end;
    return proposed;
  }

  void observe(const Observation&) override {}

 private:
  std::vector<std::size_t> order_;
  std::size_t next_ = 0;
};

// Fisher-Yates by hand: std::shuffle may differ between standard libraries, and a seed must mean one order everywhere.
std::vector<std::size_t> shuffled(std::vector<std::size_t> order, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  for (std::size_t left = order.size(); left > 1; --left) {
    std::swap(order[left - 1], order[static_cast<std::size_t>(generator() % left)]);
  }
  return order;
}

}  // namespace

Result<std::unique_ptr<Strategy>> make_strategy(const std::string& name, const StrategyInput& input) {
  if (name == "learned") return make_learned(input);
  std::vector<std::size_t> walk = input.order;
  if (name == "exhaustive") {
    std::sort(walk.begin(), walk.end());  // the space's own order: what is covered does not depend on the model
  } else if (name == "random") {
    walk = shuffled(std::move(walk), input.seed);
  } else if (name != "model") {
    return unknown_name("strategy", name, {"learned", "model", "random", "exhaustive"});
  }
  return std::unique_ptr<Strategy>(new Ordered(std::move(walk)));
}

Status check_budget(const Budget& budget) {
  if (budget.variants < 1) {
    return bad_input("budget.variants", std::to_string(budget.variants), "a positive number of variants to measure");
  }
  if (!std::isfinite(budget.seconds) || budget.seconds <= 0) {
    return bad_input("budget.seconds", std::to_string(budget.seconds), "a positive number of seconds");
  }
  if (!(budget.sol_target > 0 && budget.sol_target <= 1)) {
    return bad_input("budget.sol_target", std::to_string(budget.sol_target), "a fraction above 0 and at most 1");
  }
  if (budget.patience < 1) {
    return bad_input("budget.patience", std::to_string(budget.patience), "a positive number of measurements");
  }
  return {};
}

Budget without_priors(Budget budget) {
  budget.patience += budget.patience / 2;
  return budget;
}

Stopping::Stopping(Budget budget, double t_sol_us) : budget_(budget), t_sol_us_(t_sol_us) {}

void Stopping::observe(const Observation& observation) {
  constexpr double kGain = 0.99;
  ++measured_;
  ++since_gain_;
  if (!observation.usable || !(observation.time_us > 0)) return;
  if (best_us_ == 0 || observation.time_us < best_us_ * kGain) since_gain_ = 0;
  if (best_us_ == 0 || observation.time_us < best_us_) best_us_ = observation.time_us;
}

std::string Stopping::reason(double elapsed_s) const {
  if (best_us_ > 0 && t_sol_us_ / best_us_ >= budget_.sol_target) return "sol_target";
  if (measured_ >= budget_.variants) return "budget:variants";
  if (elapsed_s >= budget_.seconds) return "budget:seconds";
  // Without a usable kernel nothing has converged: go on to the budget.
  if (best_us_ > 0 && since_gain_ >= budget_.patience) return "converged";
  return {};
}

}  // namespace tunerd
