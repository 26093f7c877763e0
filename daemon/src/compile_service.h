// Compiling in worker processes: a bounded queue, one worker a core, and one compile for all who ask for the same
// kernel.
#pragma once

#include <deque>
#include <map>

#include "worker.h"

namespace tunerd::daemon {

struct CompileCounters {
  std::int64_t compiles = 0, failed = 0, rejected = 0, killed = 0,
               joined = 0;  // joined: asked while it was already being compiled
  double seconds = 0;
};

// What became of a compile. `fatal`: it hung or killed its worker, and must be quarantined.
struct Compiled {
  wire::CompileResult result;
  bool fatal = false;
};

class CompileService {
 public:
  CompileService(asio::io_context& loop, const std::filesystem::path& program, std::size_t workers,
                 Clock::duration deadline);

  // The NVRTC version, from the first worker's hello. Error: no NVRTC here.
  Task<Result<std::string>> start();
  // Compiles, or joins the compile of `key` that is under way. Error: Code::busy when the queue is full, Code::deadline
  // when `until` passed (the compile goes on, its result reaches `stored`), Code::missing without NVRTC. Urgent jobs go
  // before those of background tuning.
  Task<Result<Compiled>> compile(const std::string& key, wire::CompileJob job, Clock::time_point until, bool urgent);
  // Called once for every finished compile, before anybody waiting is woken.
  std::function<void(const std::string& key, const wire::CompileJob& job, const Compiled& compiled)> stored;

  void stop();
  std::size_t queued() const { return queue_.size(); }
  std::size_t active() const { return active_; }
  std::size_t workers() const { return workers_.size(); }
  const CompileCounters& counters() const { return counters_; }

 private:
  struct Flight {
    std::string key;
    wire::CompileJob job;
    Signal done;
    Compiled compiled;
    Flight(std::string k, wire::CompileJob j, const asio::any_io_executor& executor)
        : key(std::move(k)), job(std::move(j)), done(executor) {}
  };
  Task<void> serve(std::size_t index);
  Task<void> run(Worker& worker, const std::shared_ptr<Flight>& flight);

  asio::io_context& loop_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Clock::duration deadline_;
  std::deque<std::shared_ptr<Flight>> queue_;
  std::map<std::string, std::shared_ptr<Flight>> flights_;
  Signal work_;
  bool stopping_ = false;
  std::string missing_;  // why there is no NVRTC
  std::size_t active_ = 0;
  CompileCounters counters_;
};

}  // namespace tunerd::daemon
