// How one problem is tuned: compile ahead, verify and time, compare the best again, promote.
#include <algorithm>
#include <deque>

#include "log.h"
#include "model/sol.h"
#include "tuner.h"

namespace tunerd::daemon {
namespace {

// Variants compiled ahead of the measurement: what the compilers can work on, and a few that are done. More would be
// proposed before the search has seen what they depend on.
constexpr std::size_t kAheadMore = 4, kAheadMost = 32;
constexpr std::size_t kFinalists = 3;
constexpr int kFinalRounds = 3;
constexpr double kHysteresis = 0.01;      // a challenger must be this much faster than the incumbent
constexpr std::size_t kPredictTries = 8;  // offline: model choices compiled until one passes the screen
constexpr auto kCompileLimit =
    std::chrono::hours(1);  // each compile has its own deadline; this only bounds the wait in the queue

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

}  // namespace

struct Tuner::Trial {
  std::size_t candidate = 0;
  const Template* source = nullptr;
  Variant variant;
  Kernel kernel;
  wire::MeasureResult result;
  std::vector<double> samples_us;  // of the trial and of the finals
  double time_us = 0;
  bool broken = false;  // it faulted when it was timed again
  bool usable() const { return result.status == "ok" && !result.tainted; }
};

void Tuner::record(const Job& job, const Trial& trial) {
  if (core_.config.read_only) {
    ++core_.counters.writes_skipped;
    return;
  }
  cache::Sample sample;
  sample.variant = trial.variant.text();
  sample.template_digest = trial.source->closure.digest;
  const auto& result = trial.result;
  sample.median_us = result.median_us;
  sample.samples_us = result.samples_us;
  sample.tainted = result.tainted;
  sample.taint = result.taint;
  sample.status = result.status;
  sample.error = result.error;
  for (const auto& gate : result.gates)
    sample.gates.push_back({{"gate", gate.gate}, {"passed", gate.passed}, {"detail", gate.detail}});
  sample.device_before = result.device_before;
  sample.device_after = result.device_after;
  sample.launches_per_replay = result.launches_per_replay;
  sample.copies = result.copies;
  sample.launch_floor_us = result.launch_floor_us;
  if (auto written = core_.store->add_sample(core_.context, job.problem, job.key, sample); !written) {
    ++core_.counters.store_errors;
    log_error("a sample was not stored: " + written.error().text());
  }
}

Status Tuner::promote(Job& job, const Trial& best, bool measured) {
  TRY_ASSIGN(const auto sol, speed_of_light(job.entry->op, job.problem, core_.device));
  const auto* incumbent = core_.winner(job.key);
  cache::Winner winner;
  winner.problem = job.problem;
  winner.problem_key = job.key;
  winner.variant = best.variant.text();
  winner.template_digest = best.source->closure.digest;
  winner.kernel_key = best.kernel.key;
  winner.kernel_digest = best.kernel.digest;
  winner.measured = measured;
  winner.time_us = measured ? best.time_us : 0;
  winner.t_sol_us = sol.t_sol_us;
  winner.sol_fraction = measured ? sol.t_sol_us / best.time_us : 0;
  winner.generation = incumbent != nullptr ? incumbent->generation + 1 : 1;
  winner.recipe = to_json(best.kernel.spec.recipe);
  // A store that cannot write does not take the answer away: it is served from memory, and the failure is counted and
  // logged.
  static_cast<void>(core_.put_winner(std::move(winner)));
  return {};
}

Task<Status> Tuner::run(Job& job) {
  auto ranking = co_await core_.ranking(*job.entry, job.problem, job.key);
  if (!ranking) co_return Unexpected(ranking.error());
  job.report.considered = static_cast<std::int64_t>((*ranking)->space.size());
  job.report.valid = static_cast<std::int64_t>((*ranking)->order.size());
  if ((*ranking)->order.empty())
    co_return fail(Code::unsupported,
                   "No variant of " + job.entry->op.name + " is valid for " + job.key + " on " + core_.device.arch);
  if (core_.measuring()) co_return co_await measure(job, **ranking);
  co_return co_await predict(job, **ranking);
}

Task<Status> Tuner::predict(Job& job, const Ranking& ranking) {
  Error last{Code::unsupported, "nothing compiles", {}, {}, {}, {}};
  for (std::size_t i = 0; i < ranking.order.size() && i < kPredictTries; ++i) {
    const auto& candidate = ranking.space[ranking.order[i]];
    auto kernel = co_await core_.kernel(*job.entry, *candidate.source, candidate.variant, job.problem, true,
                                        Clock::now() + kCompileLimit, job.waited_for);
    if (!kernel) {
      last = kernel.error();
      if (last.code == Code::missing) break;
      ++job.report.rejected;
      continue;
    }
    ++job.report.compiled;
    Trial best;
    best.source = candidate.source;
    best.variant = candidate.variant;
    best.kernel = std::move(*kernel);
    if (auto promoted = promote(job, best, false); !promoted) co_return promoted;
    job.report.state = "predicted";
    job.report.stop_reason = "predicted";
    co_return Status{};
  }
  co_return Unexpected(std::move(last));
}

Task<Result<wire::MeasureResult>> Tuner::time_again(Job& job, const Trial& trial) {
  wire::MeasureJob again;
  again.variant = trial.variant.text();
  again.problem_key = job.key;
  again.op = job.entry->op.document;
  again.problem = job.problem.to_json();
  again.recipe = trial.kernel.spec.recipe;
  const auto artifact = core_.artifact(trial.kernel.key);
  if (!artifact) co_return fail(Code::not_found, again.variant + " is no longer stored");
  again.cubin = artifact->cubin;
  again.verify = false;
  co_return co_await core_.measure->run(again);
}

Task<Status> Tuner::measure(Job& job, const Ranking& ranking) {
  const auto started = Clock::now();
  const auto sol = speed_of_light(job.entry->op, job.problem, core_.device);
  if (!sol) co_return Unexpected(sol.error());
  StrategyInput input{&ranking.space, ranking.order, 1, {}};
  if (core_.config.strategy == "learned") input.priors = co_await priors(job);
  Stopping stopping(input.priors.empty() ? without_priors(job.budget) : job.budget, sol->t_sol_us);
  auto strategy = make_strategy(core_.config.strategy, input);
  if (!strategy) co_return Unexpected(strategy.error());

  // Compiles run ahead: each starts as its own coroutine and lands in its slot.
  struct Pending {
    std::size_t candidate;
    Signal done;
    Result<Kernel> kernel = fail(Code::internal, "not compiled");
    Pending(std::size_t index, const asio::any_io_executor& executor) : candidate(index), done(executor) {}
  };
  std::deque<std::shared_ptr<Pending>> pending;
  bool exhausted = false;
  std::int64_t proposed = 0;
  const std::size_t ahead_most = std::min(kAheadMost, core_.compile->workers() + kAheadMore);
  const auto refill = [&] {
    // No more than the budget can still use, a few spare for those that are rejected.
    const std::int64_t useful = job.budget.variants - job.report.measured + 4;
    while (!exhausted && pending.size() < ahead_most && static_cast<std::int64_t>(pending.size()) < useful) {
      const auto next = (*strategy)->propose(1);
      if (next.empty()) {
        exhausted = true;
        break;
      }
      ++proposed;
      auto slot = std::make_shared<Pending>(next.front(), core_.loop.get_executor());
      pending.push_back(slot);
      spawn(core_.loop, "compile ahead",
            [this, slot, entry = job.entry, problem = job.problem,
             candidate = ranking.space[slot->candidate]]() -> Task<void> {
              slot->kernel = co_await core_.kernel(*entry, *candidate.source, candidate.variant, problem, true,
                                                   Clock::now() + kCompileLimit, false);
              slot->done.notify();
            });
    }
  };
  refill();
  if (!pending.empty()) co_await pending.front()->done.wait_until(Clock::time_point::max());

  const auto ahead = Clock::now() - started;
  co_await core_.measure->turn().lock();
  const std::shared_ptr<void> turn(nullptr,
                                   [this](void*) { core_.measure->turn().unlock(); });  // also when something throws
  const auto measuring_since = Clock::now();
  // The budget is this problem's own time: waiting for another's turn does not count.
  const auto spent_s = [&] { return std::chrono::duration<double>(ahead + (Clock::now() - measuring_since)).count(); };
  std::vector<Trial> trials;
  std::string reason;
  Status failure;
  std::string reference_cubin;
  while (!pending.empty()) {
    reason = stopping.reason(spent_s());
    if (!reason.empty()) break;
    // Whichever compile is done goes first; when none is, the oldest is waited for.
    auto ready = std::find_if(pending.begin(), pending.end(), [](const auto& slot) { return slot->done.happened(); });
    if (ready == pending.end()) {
      co_await pending.front()->done.wait_until(Clock::now() + std::chrono::milliseconds(50));
      continue;
    }
    auto slot = *ready;
    pending.erase(ready);
    refill();
    const auto& candidate = ranking.space[slot->candidate];
    Trial trial;
    trial.candidate = slot->candidate;
    trial.source = candidate.source;
    trial.variant = candidate.variant;
    if (!slot->kernel) {
      const Error& error = slot->kernel.error();
      if (error.code == Code::missing) {
        failure = Unexpected(error);
        break;
      }
      ++job.report.rejected;
      trial.result.status = error.code == Code::unsupported ? "rejected"
                            : error.code == Code::denied    ? "quarantined"
                                                            : "compile_failed";
      trial.result.error = error.text();
      record(job, trial);
      (*strategy)->observe({slot->candidate, false, 0});
      continue;
    }
    ++job.report.compiled;
    trial.kernel = std::move(*slot->kernel);
    const auto artifact = core_.artifact(trial.kernel.key);
    if (!artifact) continue;
    if (reference_cubin.empty()) {
      auto reference = co_await core_.reference(*job.entry, trial.kernel.spec, Clock::now() + kCompileLimit);
      if (!reference) {
        failure = Unexpected(reference.error());
        break;
      }
      reference_cubin = reference->cubin;
    }
    wire::MeasureJob measure_job;
    measure_job.variant = trial.variant.text();
    measure_job.problem_key = job.key;
    measure_job.op = job.entry->op.document;
    measure_job.problem = job.problem.to_json();
    measure_job.recipe = trial.kernel.spec.recipe;
    measure_job.cubin = artifact->cubin;
    measure_job.reference_entry = job.entry->op.reference.entry;
    measure_job.reference_cubin = reference_cubin;
    measure_job.memory_limit_bytes = std::int64_t{1} << 40;  // the worker bounds it by what is free
    const auto edges =
        edge_problems(candidate.source->manifest, job.entry->op, trial.kernel.spec, job.problem, core_.device);
    if (edges)
      for (const auto& edge : *edges) measure_job.edges.push_back(edge.to_json());
    auto result = co_await core_.measure->run(measure_job);
    if (!result) {
      failure = Unexpected(result.error());
      break;
    }
    trial.result = std::move(*result);
    trial.time_us = trial.result.median_us;
    trial.samples_us = trial.result.samples_us;
    ++job.report.measured;
    job.report.wrong += trial.result.status == "wrong";
    if (trial.result.status == "fault") {
      ++job.report.faulted;
      core_.quarantine(trial.variant.text(), trial.source->closure.digest, trial.result.error);
    }
    record(job, trial);
    const Observation observation{slot->candidate, trial.usable(), trial.time_us};
    (*strategy)->observe(observation);
    stopping.observe(observation);
    if (trial.usable()) trials.push_back(std::move(trial));
  }
  if (failure) failure = co_await finals(job, trials);
  job.report.measure_s = std::chrono::duration<double>(Clock::now() - measuring_since).count();
  job.report.compile_s = std::chrono::duration<double>(ahead).count();
  job.report.stop_reason = !reason.empty() ? reason : "exhausted";
  co_return failure;
}

Task<Status> Tuner::finals(Job& job, std::vector<Trial>& trials) {
  if (trials.empty()) {
    co_return fail(Code::unsupported, "Of " + std::to_string(job.report.measured) +
                                          " variants measured none may be used: " + std::to_string(job.report.wrong) +
                                          " wrong, " + std::to_string(job.report.faulted) + " faulted, " +
                                          std::to_string(job.report.rejected) + " rejected, the rest tainted");
  }
  std::sort(trials.begin(), trials.end(), [](const Trial& a, const Trial& b) { return a.time_us < b.time_us; });
  trials.resize(std::min(trials.size(), kFinalists));
  // Head to head, in turn: an early reading in a quiet moment does not decide.
  if (core_.measuring() && trials.size() > 1) {
    for (auto& trial : trials) trial.samples_us.clear();
    for (int round = 0; round < kFinalRounds; ++round)
      for (std::size_t i = 0; i < trials.size(); ++i) {
        auto& trial = trials[round % 2 == 0 ? i : trials.size() - 1 - i];
        if (trial.broken) continue;
        auto again = co_await time_again(job, trial);
        if (!again) co_return Unexpected(again.error());
        if (again->status == "fault") {
          ++job.report.faulted;
          core_.quarantine(trial.variant.text(), trial.source->closure.digest, again->error);
        }
        // Whatever else it did (a launch that fails now, say), it may not win; a tainted reading only does not count.
        trial.broken = again->status != "ok";
        if (trial.broken || again->tainted) continue;
        trial.samples_us.insert(trial.samples_us.end(), again->samples_us.begin(), again->samples_us.end());
      }
    std::erase_if(trials, [](const Trial& trial) { return trial.broken; });
    if (trials.empty()) co_return fail(Code::unsupported, "Every finalist faulted when it was timed again");
    for (auto& trial : trials)
      if (!trial.samples_us.empty()) trial.time_us = median(trial.samples_us);
    std::stable_sort(trials.begin(), trials.end(),
                     [](const Trial& a, const Trial& b) { return a.time_us < b.time_us; });
  }
  const auto* incumbent = core_.winner(job.key);
  job.report.state = core_.real_device() ? "tuned" : "predicted";
  if (incumbent != nullptr && incumbent->measured && trials.front().time_us > incumbent->time_us * (1 - kHysteresis))
    co_return Status{};
  co_return promote(job, trials.front(), core_.real_device());
}

}  // namespace tunerd::daemon
