#include "search/learned.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "coded_space.h"
#include "surrogate.h"

namespace tunerd {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
constexpr double kShrink = 1.0;  // measurements that "no effect" weighs as much as
constexpr int kRounds = 6;       // of backfitting
constexpr std::size_t kTaughtSeeds = 12, kTemplateSeeds = 2, kCoverSeeds = 4;
constexpr std::uint64_t kRandomEvery = 16;
const double kUnusable = std::log(1.2);  // at least so far from the best is one that failed taken to be

// What other problems have taught: each effect as the shrunk mean of what the others leave over.
std::vector<double> taught_effects(const CodedSpace& coded, const std::vector<Prior>& priors) {
  std::vector<double> effects(coded.effects(), 0.0), left;
  std::vector<std::vector<std::size_t>> rows, rows_of(coded.effects());
  for (const Prior& prior : priors) {
    std::vector<std::size_t> row = coded.effects_of(prior.variant);
    if (row.empty() || !std::isfinite(prior.log_ratio)) continue;
    for (const std::size_t e : row) rows_of[e].push_back(rows.size());
    rows.push_back(std::move(row));
    left.push_back(prior.log_ratio);
  }
  for (int round = 0; round < kRounds; ++round)
    for (std::size_t e = 0; e < effects.size(); ++e) {
      if (rows_of[e].empty()) continue;
      double sum = 0;
      for (const std::size_t n : rows_of[e]) sum += left[n] + effects[e];
      const double next = sum / (static_cast<double>(rows_of[e].size()) + kShrink);
      for (const std::size_t n : rows_of[e]) left[n] += effects[e] - next;
      effects[e] = next;
    }
  return effects;
}

std::vector<double> expected_ratios(const CodedSpace& coded, const std::vector<Prior>& priors) {
  const std::vector<double> effects = taught_effects(coded, priors);
  std::vector<double> out;
  out.reserve(coded.points().size());
  for (const Point& point : coded.points())
    out.push_back(std::accumulate(point.effects.begin(), point.effects.end(), 0.0,
                                  [&](double sum, std::size_t e) { return sum + effects[e]; }));
  return out;
}

// How much below `best` a normal variable is expected to come out, counting nothing when it is above.
double expected_gain(double best, double mean, double deviation) {
  constexpr double kHopeless = -5;  // deviations
  constexpr double kRootHalf = 0.70710678118654752, kDensityAtZero = 0.39894228040143268;
  const double by = (best - mean) / deviation;
  if (by < kHopeless) return 0;
  return deviation * (by * 0.5 * std::erfc(-by * kRootHalf) + kDensityAtZero * std::exp(-0.5 * by * by));
}

class Learned : public Strategy {
 public:
  explicit Learned(const StrategyInput& input)
      : coded_(input.space != nullptr ? CodedSpace(*input.space, input.order) : CodedSpace()),
        surrogate_(coded_.points(), expected_ratios(coded_, input.priors)),
        taken_(coded_.points().size(), false),
        generator_(input.seed) {
    if (input.space != nullptr) plan_seeds(*input.space, input.priors);
  }

  std::vector<std::size_t> propose(std::size_t count) override {
    std::vector<std::size_t> out;
    while (out.size() < count) {
      const std::size_t next = choose();
      if (next == kNone) break;
      take(next);
      out.push_back(coded_.points()[next].candidate);
    }
    return out;
  }

  void observe(const Observation& observation) override {
    const std::size_t p = coded_.point_of(observation.candidate);
    if (p == coded_.points().size()) return;
    take(p);
    const double log_predicted = coded_.points()[p].log_predicted;
    const bool usable = observation.usable && observation.time_us > 0 && std::isfinite(observation.time_us);
    if (usable) best_ = std::min(best_, std::log(observation.time_us));
    const double expected = surrogate_.mean(p) + log_predicted;
    const double log_time = usable                 ? std::log(observation.time_us)
                            : std::isfinite(best_) ? std::max(expected, best_ + kUnusable)
                                                   : expected + kUnusable;
    surrogate_.measured(p, log_time - log_predicted);
    stale_ = true;
  }

 private:
  void take(std::size_t point) {
    if (taken_[point]) return;
    taken_[point] = true;
    surrogate_.choose(point);
  }

  double log_time(std::size_t point) const { return coded_.points()[point].log_predicted + surrogate_.mean(point); }

  void plan_seeds(const std::vector<Candidate>& space, const std::vector<Prior>& priors) {
    const std::size_t size = coded_.points().size();
    if (!priors.empty()) {
      std::map<std::string, std::size_t> by_text;
      for (std::size_t p = 0; p < size; ++p) by_text[space[coded_.points()[p].candidate].variant.text()] = p;
      for (const Prior& prior : priors)
        if (const auto found = by_text.find(prior.variant.text()); prior.winner && found != by_text.end())
          seeds_.push_back(found->second);
      std::vector<std::size_t> best(size);
      std::iota(best.begin(), best.end(), std::size_t{0});
      std::stable_sort(best.begin(), best.end(),
                       [this](std::size_t a, std::size_t b) { return log_time(a) < log_time(b); });
      best.resize(std::min(size, kTaughtSeeds));
      seeds_.insert(seeds_.end(), best.begin(), best.end());
    }
    std::vector<std::size_t> had(coded_.families(), 0);
    for (std::size_t p = 0; p < size; ++p)  // points stand in the model's order
      if (had[coded_.points()[p].family]++ < kTemplateSeeds) seeds_.push_back(p);
    if (priors.empty())
      for (std::size_t family = 0; family < coded_.families(); ++family) cover(family);
  }

  // Where nothing is known yet, a few variants that each bring the most values not seen before.
  void cover(std::size_t family) {
    std::vector<bool> seen(coded_.effects(), false);
    for (std::size_t turn = 0; turn < kCoverSeeds; ++turn) {
      std::size_t best = kNone;
      std::ptrdiff_t most = 0;
      for (std::size_t p = 0; p < coded_.points().size(); ++p) {
        const Point& point = coded_.points()[p];
        if (point.family != family) continue;
        const auto fresh =
            std::count_if(point.effects.begin(), point.effects.end(), [&](std::size_t e) { return !seen[e]; });
        if (fresh > most) best = p, most = fresh;
      }
      if (best == kNone) return;
      for (const std::size_t e : coded_.points()[best].effects) seen[e] = true;
      seeds_.push_back(best);
    }
  }

  std::size_t choose() {
    while (next_seed_ < seeds_.size()) {
      const std::size_t seed = seeds_[next_seed_++];
      if (!taken_[seed]) return seed;
    }
    if (stale_) surrogate_.refit();
    stale_ = false;
    return ++turn_ % kRandomEvery == 0 ? at_random() : most_promising();
  }

  std::size_t at_random() {
    std::vector<std::size_t> free;
    for (std::size_t p = 0; p < taken_.size(); ++p)
      if (!taken_[p]) free.push_back(p);
    return free.empty() ? kNone : free[static_cast<std::size_t>(generator_() % free.size())];
  }

  // By expected gain over the best; where none is to be expected or nothing was timed, by expected time.
  std::size_t most_promising() const {
    std::size_t gaining = kNone, fastest = kNone;
    double most_gain = 0, least_log_time = 0;
    for (std::size_t p = 0; p < taken_.size(); ++p) {
      if (taken_[p]) continue;
      const double expected = log_time(p);
      if (fastest == kNone || expected < least_log_time) fastest = p, least_log_time = expected;
      if (!std::isfinite(best_)) continue;
      const double gain = expected_gain(best_, expected, std::sqrt(surrogate_.variance(p)));
      if (gain > most_gain) gaining = p, most_gain = gain;
    }
    return gaining != kNone ? gaining : fastest;
  }

  CodedSpace coded_;
  Surrogate surrogate_;
  std::vector<bool> taken_;
  std::vector<std::size_t> seeds_;
  std::size_t next_seed_ = 0;
  std::uint64_t turn_ = 0;
  double best_ = std::numeric_limits<double>::infinity();  // log time
  bool stale_ = false;
  std::mt19937_64 generator_;
};

}  // namespace

std::unique_ptr<Strategy> make_learned(const StrategyInput& input) { return std::make_unique<Learned>(input); }

}  // namespace tunerd
