// A worker process seen from the loop: started when needed, one job at a time, killed at a job's deadline.
#pragma once

#include <optional>

#include "async.h"
#include "wire/worker.h"
#include "worker_host/process.h"

namespace tunerd::daemon {

class Worker {
 public:
  Worker(asio::io_context& loop, std::filesystem::path program, std::vector<std::string> arguments)
      : loop_(loop), program_(std::move(program)), arguments_(std::move(arguments)) {}

  // Starts the process if none runs and reads its hello. Errors: it cannot start, or its role cannot work here (its own
  // sentence).
  Task<Result<wire::WorkerHello>> ensure();
  // Sends a job and waits for the answer. Any failure kills the process; the error says whether it hung
  // (Code::deadline) or died (Code::device).
  Task<Result<Json>> call(const Json& job, Clock::duration deadline);
  void stop();  // kills it
  std::int64_t jobs_done() const { return jobs_done_; }
  bool running() const { return process_.running(); }
  pid_t pid() const { return process_.pid(); }

 private:
  asio::io_context& loop_;
  std::filesystem::path program_;
  std::vector<std::string> arguments_;
  worker_host::Process process_;
  std::optional<Socket> socket_;
  wire::WorkerHello hello_;
  std::int64_t jobs_done_ = 0;
};

}  // namespace tunerd::daemon
