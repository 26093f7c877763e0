#include <algorithm>
#include <cmath>
#include <tuple>

#include "store_impl.h"

namespace tunerd::cache {
namespace {

using Differences = std::vector<Explanation::Difference>;

std::string as_text(const std::string& value) { return value; }
std::string as_text(std::int64_t value) { return std::to_string(value); }
std::string as_text(bool value) { return value ? "true" : "false"; }

template <class T>
void compare(Differences& out, std::string field, const T& there, const T& here) {
  if (!(there == here)) out.push_back({std::move(field), as_text(there), as_text(here)});
}

template <class T>
void compare_maps(Differences& out, const std::map<std::string, T>& there, const std::map<std::string, T>& here,
                  const std::string& absent) {
  std::map<std::string, std::pair<std::string, std::string>> both;
  for (const auto& [name, value] : there) both.try_emplace(name, absent, absent).first->second.first = as_text(value);
  for (const auto& [name, value] : here) both.try_emplace(name, absent, absent).first->second.second = as_text(value);
  for (const auto& [name, values] : both) compare(out, name, values.first, values.second);
}

void compare_device_classes(Differences& out, const DeviceClass& there, const DeviceClass& here) {
  compare(out, "device_class.arch", there.arch, here.arch);
  compare(out, "device_class.kind", there.kind, here.kind);
  compare(out, "device_class.sm_count", there.sm_count, here.sm_count);
  compare(out, "device_class.memory_gb_per_s", there.memory_gb_per_s, here.memory_gb_per_s);
  compare(out, "device_class.mig", there.mig, here.mig);
  compare(out, "device_class.power_cap_w", there.power_cap_w, here.power_cap_w);
}

void compare_environments(Differences& out, const Environment& there, const Environment& here) {
  compare(out, "environment.nvrtc", there.nvrtc, here.nvrtc);
  compare(out, "environment.driver", there.driver, here.driver);
  compare(out, "environment.flags", there.flags, here.flags);
  compare(out, "environment.measurement_protocol", std::int64_t{there.measurement_protocol},
          std::int64_t{here.measurement_protocol});
}

void compare_problems(Differences& out, const Problem& there, const Problem& here) {
  compare(out, "dtype", std::string(to_string(there.dtype)), std::string(to_string(here.dtype)));
  compare_maps(out, there.attributes, here.attributes, "(none)");
  compare_maps(out, there.dims, here.dims, "(none)");
  compare_maps(out, there.strides, here.strides, "(dense)");
  compare(out, "allow_nondeterministic", there.allow_nondeterministic, here.allow_nondeterministic);
}

std::string template_of(const std::string& variant) { return variant.substr(0, variant.find('{')); }

// How far the sizes lie apart, to choose among rows that differ in equally many fields.
double distance(const Problem& there, const Problem& here) {
  double sum = 0;
  for (const auto& [name, value] : here.dims) {
    const auto found = there.dims.find(name);
    if (found != there.dims.end() && found->second > 0 && value > 0) {
      sum += std::abs(std::log2(double(found->second) / double(value)));
    }
  }
  return sum;
}

}  // namespace

Result<Explanation> Store::explain(
    const Context& context, const Problem& problem, const std::string& problem_key,
    const std::function<std::string(const std::string& template_name)>& template_digest_of) {
  TRY_ASSIGN(const std::vector<WinnerRow> rows, impl_->winner_rows(problem.op));
  Explanation best;
  auto rank = std::make_tuple(std::size_t(-1), 0.0, std::size_t(0));
  for (const WinnerRow& row : rows) {
    Differences differences;
    compare_device_classes(differences, row.context.device_class, context.device_class);
    compare_environments(differences, row.context.environment, context.environment);
    compare_problems(differences, row.winner.problem, problem);
    if (template_digest_of) {
      const std::string here = template_digest_of(template_of(row.winner.variant));
      compare(differences, "template_digest", row.winner.template_digest,
              here.empty() ? "(no template " + template_of(row.winner.variant) + ")" : here);
    }
    const auto other_key = std::size_t(row.winner.problem_key != problem_key);
    const auto this_rank = std::make_tuple(differences.size(), distance(row.winner.problem, problem), other_key);
    if (!best.nearest_key.empty() && this_rank >= rank) continue;
    rank = this_rank;
    best.nearest_key = row.winner.problem_key;
    best.differences = std::move(differences);
    best.hit = best.differences.empty() && row.winner.problem_key == problem_key;
  }
  return best;
}

}  // namespace tunerd::cache
