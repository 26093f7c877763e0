// Which variants to try next, given what was measured so far. One strategy, one header and source; names in
// make_strategy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "search/space.h"

namespace tunerd {

struct Observation {
  std::size_t candidate = 0;  // index into the space
  bool usable = false;        // compiled, passed every gate, and was timed untainted
  double time_us = 0;
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  // Up to `count` candidates not proposed before, best guesses first; empty when the strategy has nothing more to try.
  virtual std::vector<std::size_t> propose(std::size_t count) = 0;
  virtual void observe(const Observation& observation) = 0;
};

// What a variant did on another problem of the op, on the same device class and environment.
struct Prior {
  Variant variant;
  double log_ratio = 0;  // log(measured time / predicted time) there
  bool winner = false;   // it was promoted there
};

struct StrategyInput {
  const std::vector<Candidate>* space = nullptr;  // "learned" reads it: variants and predictions
  std::vector<std::size_t> order;                 // rank_space's result
  std::uint64_t seed = 1;                         // the same seed, the same proposals
  std::vector<Prior> priors;                      // "learned" starts from them; may be empty
};

// "learned" | "model" | "random" | "exhaustive". Unknown names are errors; "learned" without a space proposes nothing.
Result<std::unique_ptr<Strategy>> make_strategy(const std::string& name, const StrategyInput& input);

// When to stop a problem's search.
struct Budget {
  std::int64_t variants = 160;  // measured at most; must be positive
  double seconds = 30;          // wall time at most; must be positive
  double sol_target = 0.95;     // stop once the best SOL fraction reaches it; in (0, 1]
  std::int64_t patience = 48;   // stop after so many measurements without a gain of over 1%
};
Status check_budget(const Budget& budget);
// The first problem of an op has nothing to start from: half as much patience again.
Budget without_priors(Budget budget);

class Stopping {
 public:
  Stopping(Budget budget, double t_sol_us);
  void observe(const Observation& observation);
  // Empty while the search should go on; else "sol_target" | "budget:variants" | "budget:seconds" | "converged".
  std::string reason(double elapsed_s) const;

 private:
  Budget budget_;
  double t_sol_us_;
  double best_us_ = 0;
  std::int64_t measured_ = 0;
  std::int64_t since_gain_ = 0;
};

}  // namespace tunerd
