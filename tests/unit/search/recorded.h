// Recorded spaces (tests/data/README.md) searched as the daemon would, with the noise of a real measurement.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <random>
#include <set>

#include "../catalog/template_folder.h"
#include "search/model.h"
#include "search/space.h"
#include "search/strategy.h"

namespace tunerd::testing {

inline std::filesystem::path templates_folder() { return std::filesystem::path(TUNERD_SOURCE_DIR) / "templates"; }

struct Recorded {
  std::string key, op;
  Problem problem;
  std::vector<Candidate> space;
  std::vector<std::size_t> order;
  std::vector<double> us;  // by candidate; 0: not usable
  double best_us = 0, t_sol_us = 0;
  std::size_t usable = 0, missing = 0;  // of those the search may try
  std::size_t recorded = 0;             // usable ones of the whole recording, whose best is best_us
};

inline Recorded load_recorded(const Catalog& catalog, const std::filesystem::path& file) {
  const Json document = must(read_json_file(file));
  Recorded out;
  const auto& [key, variants] = *document.at("problems").items().begin();
  out.key = key;
  out.op = out.key.substr(0, out.key.find('{'));
  std::vector<std::string> words;
  const std::string inside = out.key.substr(out.op.size() + 1, out.key.size() - out.op.size() - 2);
  for (std::size_t begin = 0; begin < inside.size();) {
    const std::size_t comma = std::min(inside.find(',', begin), inside.size());
    words.push_back(inside.substr(begin, comma - begin));
    begin = comma + 1;
  }
  const OpEntry& entry = *must(catalog.op(out.op));
  out.problem = must(make_problem(entry.op, words));
  out.t_sol_us = must(speed_of_light(entry.op, out.problem, h200())).t_sol_us;
  out.space = must(enumerate_space(entry, out.problem, h200()));
  out.order = must(rank_space(out.space, entry, out.problem, h200()));
  out.us.assign(out.space.size(), 0);
  for (const auto& measured : variants) {
    if (measured.at("status") != "ok") continue;
    const double us = measured.at("median_us");
    ++out.recorded;
    if (out.best_us == 0 || us < out.best_us) out.best_us = us;
  }
  for (const std::size_t index : out.order) {
    const auto found = variants.find(out.space[index].variant.text());
    if (found == variants.end()) {
      ++out.missing;
      continue;
    }
    if (found->at("status") != "ok") continue;
    out.us[index] = found->at("median_us");
    ++out.usable;
  }
  return out;
}

// Those in tests/data whose variants today's templates still have. A small one of templates that have changed since is
// still a recording for the replay device; it says nothing of today's space.
inline std::vector<Recorded> load_all_recorded(const Catalog& catalog) {
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(TUNERD_SOURCE_DIR) / "tests/data"))
    if (file.path().filename().string().find(".recording.json") != std::string::npos) files.push_back(file.path());
  std::sort(files.begin(), files.end());
  std::vector<Recorded> all;
  for (const auto& file : files) {
    Recorded recorded = load_recorded(catalog, file);
    if (recorded.missing * 5 < recorded.order.size()) all.push_back(std::move(recorded));
  }
  return all;
}

struct Run {
  double regret = 0;  // served time / best of the whole space - 1
  std::int64_t measured = 0;
  std::string reason;
  std::vector<Prior> learned;  // what it would teach the next problem
};

// One search: compiles run `ahead` of the measurements, readings carry 1% of noise, the best three are timed again,
// nine readings each.
inline Run search(const Recorded& recorded, const std::string& name, std::uint64_t seed, const Budget& budget,
                  std::vector<Prior> priors = {}, std::size_t ahead = 20) {
  std::mt19937_64 generator(seed * 7919 + 17);
  std::normal_distribution<double> noise(0.0, 0.01);
  const auto reading = [&](std::size_t index, double share) {
    return recorded.us[index] * std::exp(share * noise(generator));
  };
  const bool untaught = priors.empty();
  auto made = make_strategy(name, {&recorded.space, recorded.order, seed, std::move(priors)});
  REQUIRE(made.has_value());
  const std::unique_ptr<Strategy> strategy = std::move(*made);
  Stopping stopping(untaught ? without_priors(budget) : budget, recorded.t_sol_us);
  std::deque<std::size_t> pending;
  std::vector<std::pair<double, std::size_t>> times;
  Run run;
  for (;;) {
    while (pending.size() < ahead) {
      const auto next = strategy->propose(1);
      if (next.empty()) break;
      pending.push_back(next.front());
    }
    run.reason = stopping.reason(0);
    if (pending.empty() || !run.reason.empty()) break;
    const std::size_t index = pending.front();
    pending.pop_front();
    if (recorded.us[index] == 0) {
      strategy->observe({index, false, 0});
      continue;
    }
    const Observation observation{index, true, reading(index, 1.0)};
    strategy->observe(observation);
    stopping.observe(observation);
    times.emplace_back(observation.time_us, index);
    run.learned.push_back(
        {recorded.space[index].variant, std::log(observation.time_us / recorded.space[index].predicted_us), false});
    ++run.measured;
  }
  REQUIRE_FALSE(times.empty());
  std::sort(times.begin(), times.end());
  times.resize(std::min<std::size_t>(times.size(), 3));
  for (auto& [us, index] : times) us = reading(index, 1.0 / 3);
  std::sort(times.begin(), times.end());
  run.regret = recorded.us[times.front().second] / recorded.best_us - 1;
  for (Prior& prior : run.learned) prior.winner = prior.variant == recorded.space[times.front().second].variant;
  return run;
}

}  // namespace tunerd::testing
