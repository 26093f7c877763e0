// What the cache has to teach a search: the samples of the nearest problems of the family that were tuned on this
// device class.
#include <cmath>
#include <map>

#include "log.h"
#include "search/nearest.h"
#include "tuner.h"

namespace tunerd::daemon {
namespace {

constexpr std::size_t kTeachers = 6;

}  // namespace

Task<std::vector<Prior>> Tuner::priors(const Job& job) {
  struct Teacher {  // copies: the index may change while a ranking is waited for
    Problem problem;
    std::string key, variant;
  };
  std::vector<Teacher> teachers;
  {
    std::vector<Problem> tuned;
    const auto family = core_.family(job.problem.family());
    for (const auto* winner : family) tuned.push_back(winner->problem);
    for (const std::size_t index : by_distance(job.problem, tuned)) {
      if (teachers.size() == kTeachers) break;
      if (family[index]->measured || !core_.real_device())
        teachers.push_back({family[index]->problem, family[index]->problem_key, family[index]->variant});
    }
  }
  std::vector<Prior> out;
  for (const Teacher& teacher : teachers) {
    const auto samples = core_.store->samples(core_.context, teacher.key);
    if (!samples) {
      log_warn("samples of " + teacher.key + " were not read: " + samples.error().text());
      continue;
    }
    if (samples->empty()) continue;
    const auto ranking = co_await core_.ranking(*job.entry, teacher.problem, teacher.key);
    if (!ranking) continue;
    std::map<std::string, double> predicted;
    for (const std::size_t index : (*ranking)->order)
      predicted.emplace((*ranking)->space[index].variant.text(), (*ranking)->space[index].predicted_us);
    for (const auto& sample : *samples) {
      const auto found = predicted.find(sample.variant);
      if (sample.status != "ok" || sample.tainted || !(sample.median_us > 0) || found == predicted.end()) continue;
      if (auto variant = Variant::parse(sample.variant))
        out.push_back({std::move(*variant), std::log(sample.median_us / std::max(found->second, 1e-3)),
                       sample.variant == teacher.variant});
    }
  }
  co_return out;
}

}  // namespace tunerd::daemon
