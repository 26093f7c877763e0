#include "worker_host/compile_pool.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <thread>

#include "wire/frame.h"
#include "worker_host/process.h"

namespace tunerd::worker_host {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kHelloDeadlineMs = 20'000;
constexpr int kFrameDeadlineMs = 20'000;

struct Worker {
  Process process;
  std::optional<std::size_t> job;
  Clock::time_point deadline;
  std::int64_t jobs_done = 0;
  std::string nvrtc;
};

Result<Worker> start(const CompilePoolOptions& options) {
  Worker worker;
  TRY_ASSIGN(worker.process, Process::spawn(options.worker, {"--role", "compile"}));
  TRY_ASSIGN(const Json body,
             wire::receive_frame(worker.process.socket(), wire::kMaxReplyBytes, nullptr, kHelloDeadlineMs));
  TRY_ASSIGN(const auto hello, wire::worker_hello_from_json(body));
  if (!hello.error.empty()) return fail(Code::missing, hello.error);
  worker.nvrtc = hello.nvrtc;
  return worker;
}

wire::CompileResult failed(const wire::CompileJob& job, std::string why) {
  wire::CompileResult result;
  result.id = job.id;
  result.error = std::move(why);
  return result;
}

class Pool {
 public:
  Pool(const CompilePoolOptions& options, const std::vector<wire::CompileJob>& jobs,
       const std::function<void(std::size_t, wire::CompileResult)>& done)
      : options_(options), jobs_(jobs), done_(done) {
    for (std::size_t i = 0; i < jobs.size(); ++i) waiting_.push_back(i);
  }

  Status run() {
    const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
    const std::size_t count =
        std::min(options_.workers ? options_.workers : cores, std::max<std::size_t>(1, jobs_.size()));
    for (std::size_t i = 0; i < count; ++i) {
      TRY_ASSIGN(auto worker, start(options_));
      workers_.push_back(std::move(worker));
    }
    while (!waiting_.empty() || busy()) {
      for (auto& worker : workers_)
        if (!worker.job && !waiting_.empty()) TRY(feed(worker));
      TRY(wait());
    }
    return {};
  }

 private:
  bool busy() const {
    return std::any_of(workers_.begin(), workers_.end(), [](const auto& worker) { return worker.job.has_value(); });
  }

  Status replace(Worker& worker) {
    TRY_ASSIGN(worker, start(options_));
    return {};
  }

  Status feed(Worker& worker) {
    if (worker.jobs_done >= options_.jobs_per_worker) TRY(replace(worker));
    const std::size_t index = waiting_.front();
    waiting_.pop_front();
    if (auto sent = wire::send_frame(worker.process.socket(), to_json(jobs_[index]), -1, kFrameDeadlineMs); !sent) {
      const auto ended = worker.process.kill();
      done_(index, failed(jobs_[index], "The compile worker ended (" + ended + ") before it took the job"));
      return replace(worker);
    }
    worker.job = index;
    worker.deadline = Clock::now() + std::chrono::milliseconds(options_.deadline_ms);
    return {};
  }

  Status wait() {
    std::vector<pollfd> fds;
    std::vector<Worker*> owners;
    auto earliest = Clock::time_point::max();
    for (auto& worker : workers_)
      if (worker.job) {
        fds.push_back({worker.process.socket(), POLLIN, 0});
        owners.push_back(&worker);
        earliest = std::min(earliest, worker.deadline);
      }
    if (fds.empty()) return {};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(earliest - Clock::now()).count();
    ::poll(fds.data(), fds.size(), static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, 60'000)));
    for (std::size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].revents != 0)
        TRY(collect(*owners[i]));
      else if (Clock::now() >= owners[i]->deadline)
        TRY(expire(*owners[i]));
    }
    return {};
  }

  Status collect(Worker& worker) {
    const std::size_t index = *worker.job;
    worker.job.reset();
    auto body = wire::receive_frame(worker.process.socket(), wire::kMaxReplyBytes, nullptr, kFrameDeadlineMs);
    auto result = body ? wire::compile_result_from_json(*body) : Result<wire::CompileResult>(Unexpected(body.error()));
    if (result) {
      ++worker.jobs_done;
      done_(index, std::move(*result));
      return {};
    }
    const auto ended = worker.process.kill();
    done_(index, failed(jobs_[index], "The compile worker ended (" + ended + ") while it compiled this"));
    return replace(worker);
  }

  Status expire(Worker& worker) {
    const std::size_t index = *worker.job;
    worker.job.reset();
    worker.process.kill();
    done_(index, failed(jobs_[index], "The compile did not end within " + std::to_string(options_.deadline_ms) +
                                          " ms and was killed"));
    return replace(worker);
  }

  const CompilePoolOptions& options_;
  const std::vector<wire::CompileJob>& jobs_;
  const std::function<void(std::size_t, wire::CompileResult)>& done_;
  std::deque<std::size_t> waiting_;
  std::vector<Worker> workers_;
};

}  // namespace

Status compile_all(const CompilePoolOptions& options, const std::vector<wire::CompileJob>& jobs,
                   const std::function<void(std::size_t, wire::CompileResult)>& done) {
  return Pool(options, jobs, done).run();
}

Result<std::string> nvrtc_version(const CompilePoolOptions& options) {
  TRY_ASSIGN(const auto worker, start(options));
  return worker.nvrtc;
}

}  // namespace tunerd::worker_host
