#include "tuner.h"

#include <algorithm>

#include "log.h"
#include "model/sol.h"

namespace tunerd::daemon {
namespace {

constexpr std::size_t kMeasuringAtOnce = 2;  // one measures while the next enumerates and compiles
constexpr std::size_t kUntunedKept = 100;

}  // namespace

Tuner::Tuner(Core& core) : core_(core), work_(core.loop.get_executor()) {}

Budget Tuner::default_budget() const {
  return {core_.config.budget_variants, core_.config.budget_seconds, core_.config.sol_target, core_.config.patience};
}

void Tuner::start() {
  const std::size_t at_once = core_.measuring() ? kMeasuringAtOnce : std::max<std::size_t>(1, core_.compile->workers());
  for (std::size_t i = 0; i < at_once; ++i) spawn(core_.loop, "tuning", [this]() { return serve(); });
}

std::shared_ptr<Tuner::Job> Tuner::find_or_add(const OpEntry& entry, const Problem& problem,
                                               std::optional<Budget> budget) {
  const std::string key = problem.key(entry.op);
  if (const auto found = jobs_.find(key); found != jobs_.end()) return found->second;
  if (queue_.size() >= static_cast<std::size_t>(core_.config.queue_limit)) return nullptr;
  auto job = std::make_shared<Job>(entry, problem, key, budget.value_or(default_budget()), core_.loop.get_executor());
  if (const auto sol = speed_of_light(entry.op, problem, core_.device))
    job->gap_us = sol->t_sol_us + 2.0;  // before anything is known: as far again as its bound
  job->report.problem = key;
  job->report.state = "pending";
  jobs_[key] = job;
  queue_.push_back(job);
  work_.notify();
  return job;
}

bool Tuner::enqueue(const OpEntry& entry, const Problem& problem) {
  const std::string key = problem.key(entry.op);
  if (untuned_.contains(key) || core_.config.read_only) return false;
  const auto job = find_or_add(entry, problem, std::nullopt);
  if (job) ++job->calls;
  return job != nullptr;
}

Task<Result<wire::TuneReport>> Tuner::tune(const OpEntry& entry, const Problem& problem, std::optional<Budget> budget,
                                           Clock::time_point until) {
  if (core_.config.read_only) co_return fail(Code::denied, "The cache is served read-only: nothing is tuned");
  if (budget)
    if (auto good = check_budget(*budget); !good) co_return Unexpected(good.error());
  const std::string key = problem.key(entry.op);
  if (const auto* winner = core_.winner(key); winner != nullptr && !jobs_.contains(key)) {
    wire::TuneReport report;
    report.problem = key;
    report.state = "already";
    co_return report;
  }
  auto job = find_or_add(entry, problem, budget);
  if (!job)
    co_return fail(Code::busy, "The tuning queue is full (" + std::to_string(core_.config.queue_limit) + " problems)");
  job->waited_for = true;
  co_await job->done.wait_until(until);
  co_return job->report;
}

std::shared_ptr<Tuner::Job> Tuner::take() {
  const auto first = std::max_element(queue_.begin(), queue_.end(), [](const auto& a, const auto& b) {
    if (a->waited_for != b->waited_for) return b->waited_for;
    return a->calls * a->gap_us < b->calls * b->gap_us;
  });
  auto job = *first;
  queue_.erase(first);
  return job;
}

Task<void> Tuner::serve() {
  for (;;) {
    if (queue_.empty()) {
      work_.reset();
      co_await work_.wait_until(Clock::time_point::max());
      continue;
    }
    auto job = take();
    ++active_;
    const auto started = Clock::now();
    Status status = fail(Code::internal, "Tuning failed in an unexpected way");
    try {
      status = co_await run(*job);
    } catch (const std::exception& error) {
      log_error("tuning " + job->key + ": " + error.what());
    }
    --active_;
    job->report.wall_s = std::chrono::duration<double>(Clock::now() - started).count();
    if (status) {
      ++core_.counters.tuned;
      untuned_.erase(job->key);
    } else {
      ++core_.counters.tune_failed;
      job->report.state = "failed";
      job->report.stop_reason = status.error().text();
      if (untuned_.size() >= kUntunedKept) untuned_.erase(untuned_.begin());
      untuned_[job->key] = status.error().text();
      log_warn("not tuned: " + job->key + ": " + status.error().text());
    }
    jobs_.erase(job->key);
    job->done.notify();
    if (status && changed) changed(*job->entry, job->problem);
  }
}

}  // namespace tunerd::daemon
