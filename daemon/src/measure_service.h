// The measure worker: owns the device, one job at a time, replaced when a variant broke it.
#pragma once

#include "worker.h"

namespace tunerd::daemon {

struct MeasureCounters {
  std::int64_t measurements = 0, faults = 0, wrong = 0, tainted = 0;
  double seconds = 0;
};

class MeasureService {
 public:
  MeasureService(asio::io_context& loop, std::filesystem::path program, std::vector<std::string> arguments,
                 Clock::duration deadline);

  Task<Result<wire::WorkerHello>> start();
  // Never an error for what the variant did: that is result.status, "fault" when it killed or hung its worker. Error:
  // the worker does not come back.
  Task<Result<wire::MeasureResult>> run(const wire::MeasureJob& job);
  // Holds the device for one problem at a time: its inputs and references stay in the worker.
  Mutex& turn() { return turn_; }
  void stop();
  const MeasureCounters& counters() const { return counters_; }
  bool running() const { return worker_.running(); }

 private:
  Worker worker_;
  Clock::duration deadline_;
  Mutex turn_;
  MeasureCounters counters_;
};

}  // namespace tunerd::daemon
