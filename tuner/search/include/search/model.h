// The analytic time model: ranks variants before any is compiled. It ranks, it does not prove.
#pragma once

#include "model/manifest.h"
#include "model/sol.h"

namespace tunerd {

// T = launch floor + max(compute waves, L2 traffic, DRAM traffic) + exposed latency, from the manifest's cost
// expressions; occupancy from threads and shared memory. Microseconds.
Result<double> predict_us(const Manifest& manifest, const OpSpec& op, const KernelSpec& kernel, const Problem& problem,
                          const DeviceSpec& device);

}  // namespace tunerd
