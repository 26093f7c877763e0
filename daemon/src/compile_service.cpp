#include "compile_service.h"

#include "log.h"

namespace tunerd::daemon {
namespace {

constexpr std::size_t kQueueLimit = 4096;
constexpr std::int64_t kJobsAWorker = 200;  // then it is replaced: NVRTC leaks
constexpr auto kRestartPause = std::chrono::milliseconds(200);

}  // namespace

CompileService::CompileService(asio::io_context& loop, const std::filesystem::path& program, std::size_t workers,
                               Clock::duration deadline)
    : loop_(loop), deadline_(deadline), work_(loop.get_executor()) {
  for (std::size_t i = 0; i < workers; ++i)
    workers_.push_back(std::make_unique<Worker>(loop, program, std::vector<std::string>{"--role", "compile"}));
}

Task<Result<std::string>> CompileService::start() {
  auto hello = co_await workers_.front()->ensure();
  if (!hello) {
    missing_ = hello.error().text();
    co_return Unexpected(hello.error());
  }
  for (std::size_t i = 0; i < workers_.size(); ++i) spawn(loop_, "compile worker", [this, i]() { return serve(i); });
  co_return hello->nvrtc;
}

Task<Result<Compiled>> CompileService::compile(const std::string& key, wire::CompileJob job, Clock::time_point until,
                                               bool urgent) {
  if (!missing_.empty()) co_return fail(Code::missing, missing_);
  std::shared_ptr<Flight> flight;
  if (const auto found = flights_.find(key); found != flights_.end()) {
    flight = found->second;
    ++counters_.joined;
  } else {
    if (queue_.size() >= kQueueLimit)
      co_return fail(Code::busy, "The compile queue is full (" + std::to_string(kQueueLimit) + " jobs)");
    flight = std::make_shared<Flight>(key, std::move(job), loop_.get_executor());
    flights_[key] = flight;
    if (urgent)
      queue_.push_front(flight);
    else
      queue_.push_back(flight);
    work_.notify();
  }
  if (!co_await flight->done.wait_until(until))
    co_return fail(Code::deadline, "The compile of " + flight->job.name + " did not end in time; it goes on behind");
  co_return flight->compiled;
}

Task<void> CompileService::serve(std::size_t index) {
  Worker& worker = *workers_[index];
  while (!stopping_) {
    if (queue_.empty()) {
      work_.reset();
      co_await work_.wait_until(Clock::time_point::max());
      continue;
    }
    auto flight = queue_.front();
    queue_.pop_front();
    ++active_;
    co_await run(worker, flight);
    --active_;
    flights_.erase(flight->key);
    if (stored) stored(flight->key, flight->job, flight->compiled);
    flight->done.notify();
  }
}

Task<void> CompileService::run(Worker& worker, const std::shared_ptr<Flight>& flight) {
  wire::CompileResult& result = flight->compiled.result;
  result.id = flight->job.id;
  if (worker.jobs_done() >= kJobsAWorker) worker.stop();
  // A worker may die of something else (the kernel's memory killer, an operator): only what kills two, or hangs one, is
  // to blame.
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto hello = co_await worker.ensure();
    if (!hello) {
      result.error = hello.error().text();
      log_warn("compile worker: " + result.error);
      asio::steady_timer pause(loop_, kRestartPause);
      co_await pause.async_wait(kTuple);
      co_return;
    }
    auto body = co_await worker.call(to_json(flight->job), deadline_);
    if (stopping_) co_return;
    auto parsed = body ? wire::compile_result_from_json(*body) : Result<wire::CompileResult>(Unexpected(body.error()));
    if (parsed) {
      ++counters_.compiles;
      result = std::move(*parsed);
      counters_.seconds += result.compile_ms / 1e3;
      counters_.failed += !result.ok;
      counters_.rejected += result.ok && !result.rejected.empty();
      co_return;
    }
    ++counters_.killed;
    result.error = "The compile of " + flight->job.name + " " + parsed.error().message;
    log_warn(result.error);
    if (parsed.error().code == Code::deadline) break;
  }
  ++counters_.compiles;
  flight->compiled.fatal = true;
}

void CompileService::stop() {
  stopping_ = true;
  for (auto& worker : workers_) worker->stop();
  for (auto& flight : queue_) flight->done.notify();
  queue_.clear();
  work_.notify();
}

}  // namespace tunerd::daemon
