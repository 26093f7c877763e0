#include "ladder.h"

#include <algorithm>
#include <cmath>

#include "log.h"
#include "model/sol.h"
#include "search/nearest.h"
#include "tuner.h"

namespace tunerd::daemon {
namespace {

constexpr std::size_t kNeighbours = 16;  // tuned problems tried for the near rung
constexpr double kCloseBy = 1.0;         // sum of |log2| over dimensions: a neighbour this close is taken as it is
constexpr double kWorseThanModel =
    1.3;  // one farther off only when the model does not see it this much behind its own choice
constexpr std::size_t kReadyRanks = 32;   // model choices looked up among the compiled
constexpr std::size_t kCompileTries = 4;  // model choices compiled before the fallback

double distance(const Problem& a, const Problem& b) {
  double sum = 0;
  for (const auto& [name, extent] : a.dims)
    if (const auto other = b.dims.find(name); other != b.dims.end())
      sum += std::abs(std::log2(static_cast<double>(extent) / static_cast<double>(other->second)));
  return sum;
}

// Whether the model thinks the variant a reasonable choice here, against its best.
bool holds_up(const Ranking& ranking, const Variant& variant) {
  if (ranking.order.empty()) return false;
  const double best_us = ranking.space[ranking.order.front()].predicted_us;
  for (const auto index : ranking.order)
    if (ranking.space[index].variant == variant) return ranking.space[index].predicted_us <= kWorseThanModel * best_us;
  return false;
}

}  // namespace

Task<Result<Ladder::Choice>> Ladder::exact(const OpEntry& entry, const Problem& problem, const std::string& key,
                                           bool may_compile, Clock::time_point until) {
  const auto* winner = core_.winner(key);
  if (winner == nullptr) co_return fail(Code::not_found, "no winner");
  const auto variant = Variant::parse(winner->variant);
  const auto source = variant ? core_.catalog.find_template(variant->template_name)
                              : Result<const Template*>(Unexpected(variant.error()));
  if (!source) co_return Unexpected(source.error());
  auto kernel = co_await core_.kernel(entry, **source, *variant, problem, may_compile, until, true);
  if (!kernel) co_return Unexpected(kernel.error());
  Choice choice;
  choice.kernel = std::move(*kernel);
  choice.winner = core_.winner(key);  // it may have changed while a compile was waited for
  if (choice.winner != nullptr && choice.winner->variant != variant->text()) choice.winner = nullptr;
  co_return choice;
}

Task<Result<Ladder::Choice>> Ladder::near(const OpEntry& entry, const Problem& problem, const std::string& key) {
  const auto family = core_.family(problem.family());
  std::vector<Problem> tuned;
  for (const auto* winner : family) tuned.push_back(winner->problem);
  struct Neighbour {  // copies, since the index may change while we wait
    std::string variant, key;
    double distance;
  };
  std::vector<Neighbour> neighbours;
  for (const auto index : by_distance(problem, tuned))
    if (family[index]->problem_key != key && neighbours.size() < kNeighbours)
      neighbours.push_back({family[index]->variant, family[index]->problem_key, distance(problem, tuned[index])});
  const auto symbols = problem_symbols(entry.op, problem);
  if (!symbols) co_return Unexpected(symbols.error());
  for (const auto& neighbour : neighbours) {
    const auto variant = Variant::parse(neighbour.variant);
    const auto source = variant ? core_.catalog.find_template(variant->template_name)
                                : Result<const Template*>(Unexpected(variant.error()));
    if (!source) continue;
    auto kernel = co_await core_.kernel(entry, **source, *variant, problem, false, Clock::now(), false);
    if (!kernel || !check_validity(kernel->spec.recipe.checks, *symbols)) continue;
    if (neighbour.distance > kCloseBy) {
      auto ranking = co_await core_.ranking(entry, problem, key);
      if (!ranking || !holds_up(**ranking, *variant)) continue;
    }
    Choice choice;
    choice.kernel = std::move(*kernel);
    choice.quality = wire::Quality::near;
    choice.note = "near: " + neighbour.key;
    co_return choice;
  }
  co_return fail(Code::not_found, "no neighbour's winner is valid here");
}

Task<Result<Ladder::Choice>> Ladder::ranked(const OpEntry& entry, const Problem& problem, const std::string& key,
                                            bool may_compile, Clock::time_point until) {
  auto ranking = co_await core_.ranking(entry, problem, key);
  if (!ranking) co_return Unexpected(ranking.error());
  Error last{Code::not_found, "no variant of " + entry.op.name + " is valid for " + key, {}, {}, {}, {}};
  std::size_t tried = 0;
  for (const auto index : (*ranking)->order) {
    const auto& candidate = (*ranking)->space[index];
    if (candidate.source->manifest.fallback) continue;  // its own rung
    if (tried++ == (may_compile ? kCompileTries : kReadyRanks)) break;
    auto kernel = co_await core_.kernel(entry, *candidate.source, candidate.variant, problem, may_compile, until, true);
    if (!kernel) {
      last = kernel.error();
      if (last.code == Code::deadline || last.code == Code::missing || last.code == Code::busy) break;
      continue;
    }
    Choice choice;
    choice.kernel = std::move(*kernel);
    choice.quality = wire::Quality::default_;
    co_return choice;
  }
  co_return Unexpected(std::move(last));
}

Task<Result<Ladder::Choice>> Ladder::fallback(const OpEntry& entry, const Problem& problem, bool may_compile,
                                              Clock::time_point until) {
  auto candidate = fallback_candidate(entry, problem, core_.device);
  if (!candidate) co_return Unexpected(candidate.error());
  auto kernel = co_await core_.kernel(entry, *candidate->source, candidate->variant, problem, may_compile, until, true);
  if (!kernel) co_return Unexpected(kernel.error());
  Choice choice;
  choice.kernel = std::move(*kernel);
  choice.quality = wire::Quality::fallback;
  co_return choice;
}

Result<Served> Ladder::answer(const OpEntry& entry, const Problem& problem, const std::string& key,
                              const Choice& choice, bool want_cubin) {
  TRY_ASSIGN(const Symbols symbols, problem_symbols(entry.op, problem));
  TRY(check_validity(choice.kernel.spec.recipe.checks, symbols));
  Served served;
  auto& answer = served.answer;
  answer.op = entry.op.name;
  answer.problem = key;
  answer.variant = choice.kernel.spec.variant.text();
  answer.quality = choice.quality;
  TRY_ASSIGN(answer.sol, speed_of_light(entry.op, problem, core_.device));
  if (choice.winner != nullptr) {
    answer.measured = choice.winner->measured;
    answer.time_us = choice.winner->measured ? choice.winner->time_us : 0;
    answer.sol_fraction = answer.time_us > 0 ? answer.sol.t_sol_us / answer.time_us : 0;
    answer.generation = choice.winner->generation;
    if (answer.sol_fraction > 1) answer.note = "bound not credible: the time beats T_SOL. ";
  }
  answer.device_class = core_.context.device_class.key();
  answer.arch = core_.device.arch;
  answer.kernel_digest = choice.kernel.digest;
  answer.cubin_bytes = choice.kernel.cubin_bytes;
  answer.problem_json = problem.to_json();
  answer.recipe = choice.kernel.spec.recipe;
  answer.note += choice.note;
  if (want_cubin) {
    TRY_ASSIGN(served.file, core_.file_of(choice.kernel));
  }
  ++core_.counters.served[std::string(to_string(choice.quality))];
  return served;
}

Error Ladder::cached_miss(const Problem& problem, const std::string& key) {
  Error error{Code::not_found, "Not cached: " + key, "problem", key, "a tuned problem", {}};
  const auto explanation = core_.store->explain(core_.context, problem, key, [this](const std::string& name) {
    const auto source = core_.catalog.find_template(name);
    return source ? (*source)->closure.digest : std::string();
  });
  if (!explanation) return error;
  if (explanation->nearest_key.empty()) {
    error.message += "; nothing of this op is stored";
    return error;
  }
  error.message += "; the nearest stored is " + explanation->nearest_key;
  std::string fields;
  for (const auto& difference : explanation->differences)
    fields += (fields.empty() ? "" : ", ") + difference.field + ": " + difference.there + " there, " + difference.here +
              " here";
  if (!fields.empty()) error.message += ", which differs in " + fields;
  return error;
}

Task<Result<Served>> Ladder::ready(const OpEntry& entry, const Problem& problem, bool want_cubin) {
  const std::string key = problem.key(entry.op);
  auto choice = co_await exact(entry, problem, key, false, Clock::now());
  if (!choice) choice = co_await near(entry, problem, key);
  if (!choice) choice = co_await ranked(entry, problem, key, false, Clock::now());
  if (!choice) choice = co_await fallback(entry, problem, false, Clock::now());
  if (!choice) co_return Unexpected(choice.error());
  co_return answer(entry, problem, key, *choice, want_cubin);
}

Task<Result<Served>> Ladder::get(const wire::GetRequest& request) {
  auto found = core_.problem_of(request.op, request.fields);
  if (!found) co_return Unexpected(found.error());
  const OpEntry& entry = *found->first;
  const Problem problem = found->second;
  const std::string key = problem.key(entry.op);
  const auto until = Clock::now() + std::chrono::milliseconds(request.deadline_ms);
  const bool cached = request.wait == wire::Wait::cached;

  auto choice = co_await exact(entry, problem, key, !cached && core_.no_compiler.empty(), until);
  if (choice) co_return answer(entry, problem, key, *choice, request.want_cubin);
  if (cached) {
    Error miss = cached_miss(problem, key);
    if (core_.winner(key) != nullptr)
      miss.message = "Not cached: " + key + " has a winner, but its kernel is not stored: " + choice.error().text();
    co_return Unexpected(std::move(miss));
  }
  ++core_.counters.misses;

  std::string note;
  if (request.wait == wire::Wait::tuned) {
    auto report = co_await tuner_.tune(entry, problem, std::nullopt, until);
    choice = co_await exact(entry, problem, key, true, until);
    if (choice) co_return answer(entry, problem, key, *choice, request.want_cubin);
    note = report ? report->state == "failed" ? "tuning failed: " + report->stop_reason
                                              : "tuning did not end in time, it goes on"
                  : report.error().text();
  } else if (request.tune && core_.config.tune) {
    note = tuner_.enqueue(entry, problem) ? "tuning queued" : "";
  }
  choice = co_await near(entry, problem, key);
  if (!choice) choice = co_await ranked(entry, problem, key, false, until);
  if (!choice) choice = co_await fallback(entry, problem, false, until);
  // Nothing is ready: compile the model's choice, and when that fails the fallback, which is always valid.
  if (!choice) choice = co_await ranked(entry, problem, key, true, until);
  if (!choice) {
    const Error first = choice.error();
    choice = co_await fallback(entry, problem, true, std::max(until, Clock::now() + std::chrono::seconds(1)));
    if (!choice) co_return Unexpected(first.code == Code::deadline ? first : choice.error());
  }
  if (!note.empty()) choice->note += (choice->note.empty() ? "" : "; ") + note;
  co_return answer(entry, problem, key, *choice, request.want_cubin);
}

}  // namespace tunerd::daemon
