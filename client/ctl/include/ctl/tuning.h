// Asking the daemon to tune, shared by `tune` and `sweep`.
#pragma once

#include <cstdint>
#include <string>

#include "model/json_reader.h"

namespace CLI {
class App;
}

namespace tunerd::ctl {

struct TuneOptions {
  std::int64_t wait_s = 3600;
  std::int64_t budget_variants = 0, patience = 0;  // 0: the daemon's own
  double budget_seconds = 0, sol_target = 0;
};

void add_tune_options(CLI::App& command, TuneOptions& options);
// {problem, budget?, wait_ms} for the message `tune`.
Result<Json> tune_request(const Json& problem, const TuneOptions& options, std::int64_t wait_ms);
// "gemm{…}  gemm_mma{…}  T_SOL 12.3 us  time 14.0 us  SOL 0.88  measured  tuned"
std::string report_line(const Json& report);

}  // namespace tunerd::ctl
