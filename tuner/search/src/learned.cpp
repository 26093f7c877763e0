#include "search/learned.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <unordered_map>

namespace tunerd {
namespace {

constexpr double kShrink = 3.0;  // measurements that a prior effect weighs as much as
constexpr int kRounds = 6;       // of backfitting
constexpr std::size_t kTop = 4;  // whose neighbourhood is searched
constexpr std::size_t kTemplateSeeds = 3, kCoverSeeds = 10, kModelSeeds = 12;
constexpr double kClose = 0.3;           // log time within which a template's best is worth its own turns
constexpr double kStepPenalty = 0.02;    // log time, for each value skipped
constexpr double kSecondPenalty = 0.03;  // for a second parameter changed at once
constexpr std::size_t kReach = 4;        // parameters that may differ for a residual to say something
constexpr double kWeight[kReach] = {4.0, 1.5, 0.6, 0.2};  // by how many do
constexpr double kModelTrust = 0.5;   // share of the model's word about the difference between neighbours
constexpr std::uint64_t kTurns = 16;  // of proposals: these take turns
constexpr std::uint64_t kNearTurns = 9, kRandomTurns = 1;

// One candidate, coded: which effects it has, and where it stands among its template's value levels.
struct Point {
  std::size_t candidate = 0;  // index into the space
  std::size_t family = 0;     // its template
  std::vector<std::size_t> level, effect;
  double log_predicted = 0;
};

// A template's parameters and the values that occur of each.
struct Family {
  std::vector<std::string> names;
  std::vector<std::vector<std::int64_t>> values;
  std::vector<std::uint64_t> stride;
  std::unordered_map<std::uint64_t, std::size_t> by_code;  // levels -> point
};

struct Measured {
  std::size_t point;
  double log_time, log_ratio;
  double residual = 0;  // of log_ratio, after the effects
};

using Effects = std::vector<double>;

// Each effect as the shrunk mean of what the others leave over.
void backfit(const std::vector<std::pair<std::vector<std::size_t>, double>>& rows, const Effects& base,
             Effects& effects) {
  effects = base;
  std::vector<std::vector<std::size_t>> rows_of(base.size());
  std::vector<double> left(rows.size());
  for (std::size_t n = 0; n < rows.size(); ++n) {
    left[n] = rows[n].second;
    for (const std::size_t e : rows[n].first) {
      rows_of[e].push_back(n);
      left[n] -= effects[e];
    }
  }
  for (int round = 0; round < kRounds; ++round)
    for (std::size_t e = 0; e < effects.size(); ++e) {
      if (rows_of[e].empty()) continue;
      double sum = kShrink * base[e];
      for (const std::size_t n : rows_of[e]) sum += left[n] + effects[e];
      const double next = sum / (static_cast<double>(rows_of[e].size()) + kShrink);
      for (const std::size_t n : rows_of[e]) left[n] += effects[e] - next;
      effects[e] = next;
    }
}

class Learned : public Strategy {
 public:
  explicit Learned(const StrategyInput& input) : generator_(input.seed) {
    if (input.space != nullptr) code(input);
    learn_priors(input);
    effects_ = base_;
    plan_seeds(input);
  }

  std::vector<std::size_t> propose(std::size_t count) override {
    std::vector<std::size_t> out;
    while (out.size() < count) {
      const std::size_t next = choose();
      if (next == kNone) break;
      taken_[next] = true;
      out.push_back(points_[next].candidate);
    }
    return out;
  }

  void observe(const Observation& observation) override {
    const auto found = point_of_.find(observation.candidate);
    if (found == point_of_.end()) return;
    taken_[found->second] = true;
    if (!observation.usable || !(observation.time_us > 0)) return;
    const double log_time = std::log(observation.time_us);
    measured_.push_back({found->second, log_time, log_time - points_[found->second].log_predicted, 0});
    stale_ = true;
  }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  void code(const StrategyInput& input) {
    std::map<std::string, std::size_t> families;
    std::map<std::string, std::vector<std::set<std::int64_t>>> values;
    for (const std::size_t index : input.order) {
      const Variant& variant = (*input.space)[index].variant;
      auto& seen = values[variant.template_name];
      seen.resize(variant.params.size());
      std::size_t i = 0;
      for (const auto& [name, value] : variant.params) seen[i++].insert(value);
    }
    for (const std::size_t index : input.order) {
      const Candidate& candidate = (*input.space)[index];
      const Variant& variant = candidate.variant;
      const auto [at, added] = families.try_emplace(variant.template_name, families_.size());
      if (added) add_family(variant, values[variant.template_name]);
      Family& family = families_[at->second];
      Point point;
      point.candidate = index;
      point.family = at->second;
      point.log_predicted = std::log(std::max(candidate.predicted_us, 1e-3));
      point.effect.push_back(effect_ids_.at(variant.template_name));
      std::uint64_t code = 0;
      std::size_t i = 0;
      for (const auto& [name, value] : variant.params) {
        const auto level = static_cast<std::size_t>(
            std::lower_bound(family.values[i].begin(), family.values[i].end(), value) - family.values[i].begin());
        point.level.push_back(level);
        point.effect.push_back(effect_ids_.at(effect_name(variant.template_name, name, value)));
        code += family.stride[i++] * level;
      }
      family.by_code[code] = points_.size();
      point_of_[index] = points_.size();
      points_.push_back(std::move(point));
    }
    taken_.assign(points_.size(), false);
  }

  static std::string effect_name(const std::string& source, const std::string& name, std::int64_t value) {
    return source + "/" + name + "=" + std::to_string(value);
  }

  void add_family(const Variant& variant, const std::vector<std::set<std::int64_t>>& values) {
    Family family;
    effect_ids_.emplace(variant.template_name, effect_ids_.size());
    std::uint64_t stride = 1;
    std::size_t i = 0;
    for (const auto& [name, unused] : variant.params) {
      family.names.push_back(name);
      family.values.emplace_back(values[i].begin(), values[i].end());
      family.stride.push_back(stride);
      stride *= values[i].size();
      for (const std::int64_t value : values[i])
        effect_ids_.emplace(effect_name(variant.template_name, name, value), effect_ids_.size());
      ++i;
    }
    families_.push_back(std::move(family));
  }

  void learn_priors(const StrategyInput& input) {
    base_.assign(effect_ids_.size(), 0.0);
    std::vector<std::pair<std::vector<std::size_t>, double>> rows;
    for (const Prior& prior : input.priors) {
      const auto source = effect_ids_.find(prior.variant.template_name);
      if (source == effect_ids_.end() || !std::isfinite(prior.log_ratio)) continue;
      std::vector<std::size_t> effects{source->second};
      for (const auto& [name, value] : prior.variant.params)
        if (const auto id = effect_ids_.find(effect_name(prior.variant.template_name, name, value));
            id != effect_ids_.end())
          effects.push_back(id->second);
      taught_.insert(effects.begin(), effects.end());
      rows.emplace_back(std::move(effects), prior.log_ratio);
    }
    if (rows.empty()) return;
    const Effects zero = base_;
    backfit(rows, zero, base_);
  }

  double corrected(const Point& point) const {
    double sum = point.log_predicted;
    for (const std::size_t e : point.effect) sum += effects_[e];
    return sum;
  }

  void plan_seeds(const StrategyInput& input) {
    std::map<std::string, std::size_t> by_text;
    if (std::any_of(input.priors.begin(), input.priors.end(), [](const Prior& prior) { return prior.winner; }))
      for (std::size_t p = 0; p < points_.size(); ++p) by_text[(*input.space)[points_[p].candidate].variant.text()] = p;
    for (const Prior& prior : input.priors)
      if (prior.winner)
        if (const auto found = by_text.find(prior.variant.text()); found != by_text.end())
          seeds_.push_back(found->second);
    if (!input.priors.empty()) {
      std::vector<std::size_t> best(points_.size());
      for (std::size_t p = 0; p < best.size(); ++p) best[p] = p;
      std::stable_sort(best.begin(), best.end(),
                       [this](std::size_t a, std::size_t b) { return corrected(points_[a]) < corrected(points_[b]); });
      best.resize(std::min(best.size(), kModelSeeds));
      seeds_.insert(seeds_.end(), best.begin(), best.end());
    }
    std::vector<std::size_t> had(families_.size(), 0);
    for (std::size_t p = 0; p < points_.size(); ++p)  // points stand in the model's order
      if (had[points_[p].family]++ < kTemplateSeeds) seeds_.push_back(p);
    for (std::size_t family = 0; family < families_.size(); ++family) cover(family);
  }

  // What nothing is known of yet: every such value of every parameter is tried early, a few new ones at a time: an
  // effect that was never seen cannot be corrected.
  void cover(std::size_t family) {
    std::set<std::size_t> seen = taught_;
    for (std::size_t turn = 0; turn < kCoverSeeds; ++turn) {
      std::size_t best = kNone, most = 0;
      for (std::size_t p = 0; p < points_.size(); ++p) {
        if (points_[p].family != family) continue;
        const auto fresh = static_cast<std::size_t>(std::count_if(points_[p].effect.begin(), points_[p].effect.end(),
                                                                  [&](std::size_t e) { return !seen.contains(e); }));
        if (fresh > most) best = p, most = fresh;
      }
      if (best == kNone) break;
      seen.insert(points_[best].effect.begin(), points_[best].effect.end());
      seeds_.push_back(best);
    }
  }

  std::size_t choose() {
    while (next_seed_ < seeds_.size()) {
      const std::size_t seed = seeds_[next_seed_++];
      if (!taken_[seed]) return seed;
    }
    if (stale_) {
      std::vector<std::pair<std::vector<std::size_t>, double>> rows;
      for (const Measured& measured : measured_) rows.emplace_back(points_[measured.point].effect, measured.log_ratio);
      backfit(rows, base_, effects_);
      for (Measured& measured : measured_) measured.residual = measured.log_time - corrected(points_[measured.point]);
      stale_ = false;
    }
    const std::uint64_t turn = turn_++ % kTurns;
    if (turn < kRandomTurns) return at_random();
    // Near and far in turn, not in blocks: what is proposed ahead of the measurements is a mixture too.
    const bool near = turn * kNearTurns / (kTurns - 1) != (turn - 1) * kNearTurns / (kTurns - 1);
    if (near)
      if (const std::size_t next = nearby(); next != kNone) return next;
    return anywhere();
  }

  // What the effects leave over near a point: the residuals of the measured variants of its template, each the less the
  // more parameters differ.
  double residual(const Point& point) const {
    double sum = 0, weights = 1;
    for (const Measured& measured : measured_) {
      const Point& other = points_[measured.point];
      if (other.family != point.family) continue;
      std::size_t apart = 0;
      for (std::size_t i = 0; i < point.level.size(); ++i) apart += point.level[i] != other.level[i] ? 1 : 0;
      if (apart >= kReach) continue;
      sum += kWeight[apart] * measured.residual;
      weights += kWeight[apart];
    }
    return sum / weights;
  }

  std::size_t at_random() {
    std::vector<std::size_t> free;
    for (std::size_t p = 0; p < points_.size(); ++p)
      if (!taken_[p]) free.push_back(p);
    return free.empty() ? kNone : free[static_cast<std::size_t>(generator_() % free.size())];
  }

  std::size_t anywhere() const {
    std::size_t best = kNone;
    double least = 0;
    for (std::size_t p = 0; p < points_.size(); ++p) {
      if (taken_[p]) continue;
      const double value = corrected(points_[p]) + residual(points_[p]);
      if (best == kNone || value < least) best = p, least = value;
    }
    return best;
  }

  // The best measured; every third time those of one template only, the templates in turn that are not far behind: a
  // family whose first tries were unlucky gets more of them.
  std::vector<Measured> centres() {
    std::vector<Measured> top = measured_;
    std::sort(top.begin(), top.end(), [](const Measured& a, const Measured& b) { return a.log_time < b.log_time; });
    if (near_turn_++ % 3 == 2 && !top.empty()) {
      std::vector<std::size_t> close;
      for (const Measured& measured : top)
        if (const std::size_t family = points_[measured.point].family;
            measured.log_time <= top.front().log_time + kClose &&
            std::find(close.begin(), close.end(), family) == close.end())
          close.push_back(family);
      const std::size_t chosen = close[near_turn_ / 3 % close.size()];
      std::erase_if(top, [&](const Measured& measured) { return points_[measured.point].family != chosen; });
    }
    top.resize(std::min(kTop, top.size()));
    return top;
  }

  std::size_t nearby() {
    const std::vector<Measured> top = centres();
    std::size_t best = kNone;
    double least = 0;
    for (std::size_t t = 0; t < top.size(); ++t) {
      const Point& centre = points_[top[t].point];
      const double model_here = corrected(centre);
      const auto consider = [&](std::uint64_t code, double penalty) {
        const auto found = families_[centre.family].by_code.find(code);
        if (found == families_[centre.family].by_code.end() || taken_[found->second]) return;
        const double value = top[t].log_time + kModelTrust * (corrected(points_[found->second]) - model_here) + penalty;
        if (best == kNone || value < least) best = found->second, least = value;
      };
      around(centre, consider);
    }
    return best;
  }

  template <class Consider>
  void around(const Point& centre, const Consider& consider) const {
    const Family& family = families_[centre.family];
    std::uint64_t here = 0;
    for (std::size_t i = 0; i < centre.level.size(); ++i) here += family.stride[i] * centre.level[i];
    const auto moved = [&](std::uint64_t code, std::size_t i, std::size_t level) {
      return code + family.stride[i] * level - family.stride[i] * centre.level[i];
    };
    const auto cost = [&](std::size_t i, std::size_t level) {
      return kStepPenalty * std::abs(static_cast<double>(level) - static_cast<double>(centre.level[i]));
    };
    for (std::size_t i = 0; i < centre.level.size(); ++i)
      for (std::size_t a = 0; a < family.values[i].size(); ++a) {
        if (a == centre.level[i]) continue;
        const std::uint64_t one = moved(here, i, a);
        consider(one, cost(i, a));
        for (std::size_t j = i + 1; j < centre.level.size(); ++j)
          for (std::size_t b = 0; b < family.values[j].size(); ++b)
            if (b != centre.level[j]) consider(moved(one, j, b), cost(i, a) + cost(j, b) + kSecondPenalty);
      }
  }

  std::vector<Point> points_;  // in the order of the model
  std::vector<Family> families_;
  std::map<std::string, std::size_t> effect_ids_;
  std::unordered_map<std::size_t, std::size_t> point_of_;  // candidate -> point
  std::vector<bool> taken_;
  std::vector<Measured> measured_;
  Effects base_, effects_;
  std::set<std::size_t> taught_;  // effects that priors say something of
  std::vector<std::size_t> seeds_;
  std::size_t next_seed_ = 0;
  std::uint64_t turn_ = 0, near_turn_ = 0;
  bool stale_ = false;
  std::mt19937_64 generator_;
};

}  // namespace

std::unique_ptr<Strategy> make_learned(const StrategyInput& input) { return std::make_unique<Learned>(input); }

}  // namespace tunerd
