// Timing as docs/measurement.md says: rotating copies so that L2 is cold, graph replays between events, the median of
// repeats.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gpu/arguments.h"
#include "gpu/helpers.h"
#include "model/problem.h"
#include "wire/worker.h"

namespace tunerd::gpu {

struct Timing {
  std::vector<double> samples_us;  // per launch, one for each replay
  double median_us = 0;
  std::int64_t launches_per_replay = 0, copies = 0;
};

class Timer {
 public:
  Timer(const Device& device, const Helpers& helpers) : device_(device), helpers_(helpers) {}

  // Errors as Verifier::run.
  Result<Timing> time(const wire::MeasureJob& job, const OpSpec& op, const Problem& problem, CUfunction kernel);
  // An empty kernel in the same kind of graph, microseconds a launch; measured once.
  Result<double> launch_floor_us();
  void forget();  // releases the copies
  std::int64_t held_bytes() const;

 private:
  struct Copies {
    std::string key;
    std::vector<std::map<std::string, Buffer>> tensors;  // one map a copy
    std::int64_t bytes_each = 0;
    bool sweep = false;  // the copies together do not fill L2: sweep it before each replay
  };
  Status prepare(const wire::MeasureJob& job, const OpSpec& op, const Problem& problem);

  const Device& device_;
  const Helpers& helpers_;
  Copies copies_;
  Buffer sweep_;
  double floor_us_ = 0;
};

double median(std::vector<double> values);  // 0 when empty

}  // namespace tunerd::gpu
