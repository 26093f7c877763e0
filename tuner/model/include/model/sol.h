// The Speed-of-Light bound of a problem on a device: T_SOL = max(flops / peak compute, fused bytes / bandwidth).
#pragma once

#include "model/device.h"
#include "model/problem.h"

namespace tunerd {

struct Sol {
  std::int64_t flops = 0;
  std::int64_t bytes = 0;
  double peak_flops_per_s = 0;
  double memory_bytes_per_s = 0;
  double t_compute_us = 0;
  double t_memory_us = 0;
  double t_sol_us = 0;
  std::string bound;         // "compute" | "memory"
  std::string peaks_source;  // e.g. "datasheet: h200-sxm"
};

// Errors: flops or bytes overflow 64 bits; the device has no peak for the dtype (names the ones it has).
Result<Sol> speed_of_light(const OpSpec& op, const Problem& problem, const DeviceSpec& device);
Json to_json(const Sol& sol);  // flops, bytes, t_compute_us, t_memory_us, t_sol_us, bound, peak_flops_per_s,
                               // memory_bytes_per_s, peaks_source

}  // namespace tunerd
