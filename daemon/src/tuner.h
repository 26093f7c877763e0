// Tuning problems one after another behind the answers: what can save most goes first, each problem once however many
// ask.
#pragma once

#include "core.h"
#include "search/strategy.h"

namespace tunerd::daemon {

class Tuner {
 public:
  explicit Tuner(Core& core);

  void start();
  // Queues a problem for the background. False when tuning is off, the queue is full, or it is known to fail.
  bool enqueue(const OpEntry& entry, const Problem& problem);
  // Tunes now (before the background queue) or joins a tuning under way, and waits for its end or `until` (state
  // "pending" then).
  Task<Result<wire::TuneReport>> tune(const OpEntry& entry, const Problem& problem, std::optional<Budget> budget,
                                      Clock::time_point until);
  // Called when what is served for a problem changed.
  std::function<void(const OpEntry& entry, const Problem& problem)> changed;

  std::size_t queued() const { return queue_.size(); }
  std::size_t active() const { return active_; }
  // Problems that could not be tuned, and why; the last 100.
  const std::map<std::string, std::string>& untuned() const { return untuned_; }
  Budget default_budget() const;

 private:
  struct Job {
    const OpEntry* entry;
    Problem problem;
    std::string key;
    Budget budget;
    double calls = 1, gap_us = 0;  // calls × (predicted time − bound) orders the queue
    bool waited_for = false;
    Signal done;
    wire::TuneReport report;
    Job(const OpEntry& e, Problem p, std::string k, Budget b, const asio::any_io_executor& executor)
        : entry(&e), problem(std::move(p)), key(std::move(k)), budget(b), done(executor) {}
  };
  struct Trial;
  Task<void> serve();
  std::shared_ptr<Job> take();
  std::shared_ptr<Job> find_or_add(const OpEntry& entry, const Problem& problem, std::optional<Budget> budget);
  Task<Status> run(Job& job);
  Task<std::vector<Prior>> priors(const Job& job);
  Task<Status> predict(Job& job, const Ranking& ranking);
  Task<Status> measure(Job& job, const Ranking& ranking);
  Task<Status> finals(Job& job, std::vector<Trial>& trials);
  Task<Result<wire::MeasureResult>> time_again(Job& job, const Trial& trial);
  Status promote(Job& job, const Trial& best, bool measured);
  void record(const Job& job, const Trial& trial);

  Core& core_;
  std::map<std::string, std::shared_ptr<Job>> jobs_;  // queued or running, by problem key
  std::vector<std::shared_ptr<Job>> queue_;
  Signal work_;
  std::size_t active_ = 0;
  std::map<std::string, std::string> untuned_;
};

}  // namespace tunerd::daemon
