// Compile workers for tools without an event loop: N processes, one job at a time each, a deadline on every job.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "wire/worker.h"

namespace tunerd::worker_host {

struct CompilePoolOptions {
  std::filesystem::path worker;        // worker_path()
  std::size_t workers = 0;             // 0: one a core
  std::int64_t deadline_ms = 60'000;   // of one job; a worker that passes it is killed and replaced
  std::int64_t jobs_per_worker = 200;  // then it is recycled
};

// Compiles every job, calling `done` on the caller's thread as each ends, in no particular order. A job whose worker
// died or hung ends with ok = false and an error that says so; the others go on. Fails only when no worker can be
// started (no tuner-worker, no NVRTC).
Status compile_all(const CompilePoolOptions& options, const std::vector<wire::CompileJob>& jobs,
                   const std::function<void(std::size_t index, wire::CompileResult result)>& done);

// The NVRTC version a fresh worker reports, or its error.
Result<std::string> nvrtc_version(const CompilePoolOptions& options);

}  // namespace tunerd::worker_host
