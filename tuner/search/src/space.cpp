#include "search/space.h"

#include <algorithm>
#include <map>
#include <optional>

#include "model/variant_resolver.h"
#include "search/model.h"

namespace tunerd {
namespace {

Result<std::int64_t> combinations(const Manifest& manifest, std::int64_t limit) {
  std::int64_t count = 1;
  for (const Param& param : manifest.params) {
    // Both factors are bounded by what was checked before, so the product cannot overflow.
    count *= static_cast<std::int64_t>(param.values.size());
    if (count > limit) {
      return bad_input(manifest.name + ".params", "over " + std::to_string(limit) + " combinations",
                       "at most " + std::to_string(limit) + " combinations a template");
    }
  }
  return count;
}

Candidate judged(const Template& source, const VariantResolver& resolver, const std::vector<std::int64_t>& values,
                 ResolvedVariant& scratch) {
  Candidate candidate;
  candidate.source = &source;
  candidate.variant.template_name = source.manifest.name;
  for (std::size_t i = 0; i < values.size(); ++i) {
    candidate.variant.params.emplace(source.manifest.params[i].name, values[i]);
  }
  Status status = resolver.resolve(values, scratch);
  if (status) status = resolver.fits(scratch);
  if (status) status = resolver.worth_trying(scratch);
  candidate.valid = status.has_value();
  if (!status) candidate.reason = std::move(status).error().message;
  return candidate;
}

Status enumerate_template(const Template& source, const OpSpec& op, const Problem& problem, const DeviceSpec& device,
                          std::int64_t limit, std::vector<Candidate>& space) {
  const Manifest& manifest = source.manifest;
  const Result<VariantResolver> resolver = VariantResolver::make(manifest, op, problem, device);
  if (!resolver) {
    Candidate candidate;
    candidate.source = &source;
    candidate.variant.template_name = manifest.name;
    candidate.reason = resolver.error().message;
    space.push_back(std::move(candidate));
    return {};
  }
  TRY_ASSIGN(const std::int64_t count, combinations(manifest, limit));
  space.reserve(space.size() + static_cast<std::size_t>(count));
  std::vector<std::size_t> at(manifest.params.size(), 0);
  std::vector<std::int64_t> values;
  for (const Param& param : manifest.params) values.push_back(param.values.front());
  ResolvedVariant scratch;
  for (std::int64_t i = 0; i < count; ++i) {
    space.push_back(judged(source, *resolver, values, scratch));
    for (std::size_t digit = at.size(); digit-- > 0;) {
      const std::vector<std::int64_t>& allowed = manifest.params[digit].values;
      at[digit] = (at[digit] + 1) % allowed.size();
      values[digit] = allowed[at[digit]];
      if (at[digit] != 0) break;
    }
  }
  return {};
}

struct Ranker {
  VariantResolver resolver;
  CostModel model;
};

Result<Ranker> make_ranker(const Template& source, const OpSpec& op, const Problem& problem, const DeviceSpec& device) {
  TRY_ASSIGN(VariantResolver resolver, VariantResolver::make(source.manifest, op, problem, device));
  TRY_ASSIGN(CostModel model, CostModel::make(source.manifest, op, problem, device, resolver));
  return Ranker{std::move(resolver), std::move(model)};
}

// The parameters in the manifest's order; enumerate_space made them, so every one is there.
bool values_of(const Candidate& candidate, std::vector<std::int64_t>& values) {
  values.clear();
  for (const Param& param : candidate.source->manifest.params) {
    const auto found = candidate.variant.params.find(param.name);
    if (found == candidate.variant.params.end()) return false;
    values.push_back(found->second);
  }
  return true;
}

}  // namespace

Result<std::vector<Candidate>> enumerate_space(const OpEntry& entry, const Problem& problem, const DeviceSpec& device,
                                               std::int64_t limit) {
  if (limit < 1) return bad_input("limit", std::to_string(limit), "at least 1");
  // Checked once for all: an overflow here is the problem's fault, not that of every template.
  TRY_ASSIGN(const Symbols symbols, problem_symbols(entry.op, problem));
  static_cast<void>(symbols);
  std::vector<Candidate> space;
  for (const Template& source : entry.templates) {
    TRY(enumerate_template(source, entry.op, problem, device, limit, space));
  }
  return space;
}

Result<std::vector<std::size_t>> rank_space(std::vector<Candidate>& space, const OpEntry& entry, const Problem& problem,
                                            const DeviceSpec& device) {
  std::map<const Template*, Ranker> rankers;
  std::vector<std::size_t> order;
  std::vector<std::int64_t> values;
  ResolvedVariant scratch;
  const Template* last = nullptr;
  const Ranker* ranker = nullptr;
  for (std::size_t i = 0; i < space.size(); ++i) {
    Candidate& candidate = space[i];
    if (!candidate.valid) continue;
    if (candidate.source != last) {
      auto found = rankers.find(candidate.source);
      if (found == rankers.end()) {
        TRY_ASSIGN(Ranker made, make_ranker(*candidate.source, entry.op, problem, device));
        found = rankers.emplace(candidate.source, std::move(made)).first;
      }
      last = candidate.source;
      ranker = &found->second;
      scratch = ResolvedVariant{};
    }
    if (!values_of(candidate, values)) {
      return bad_input("variant", candidate.variant.text(), "a candidate of enumerate_space");
    }
    TRY(ranker->resolver.resolve(values, scratch));
    Result<double> predicted = ranker->model.predict_us(ranker->resolver, scratch);
    if (!predicted) {
      // A broken cost must not take the op's other variants down; the reason shows in the list of variants.
      candidate.valid = false;
      candidate.reason = std::move(predicted).error().text();
      continue;
    }
    candidate.predicted_us = *predicted;
    order.push_back(i);
  }
  // Many variants tie, so the texts are made once and not at every comparison.
  std::vector<std::string> texts(space.size());
  for (const std::size_t i : order) texts[i] = space[i].variant.text();
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (space[a].predicted_us != space[b].predicted_us) return space[a].predicted_us < space[b].predicted_us;
    return texts[a] < texts[b];
  });
  return order;
}

Result<Candidate> fallback_candidate(const OpEntry& entry, const Problem& problem, const DeviceSpec& device) {
  std::vector<Candidate> space;
  std::string reason = "none of its templates says \"fallback\": true";
  for (const Template& source : entry.templates) {
    if (!source.manifest.fallback) continue;
    TRY(enumerate_template(source, entry.op, problem, device, 1'000'000, space));
  }
  if (!space.empty()) reason = space.front().variant.text() + ": " + space.front().reason;
  TRY_ASSIGN(const std::vector<std::size_t> order, rank_space(space, entry, problem, device));
  if (!order.empty()) return std::move(space[order.front()]);
  return Unexpected(Error{Code::unsupported,
                          "no fallback serves this problem: " + reason,
                          "op",
                          entry.op.name,
                          "an op with a fallback template for it",
                          {}});
}

}  // namespace tunerd
