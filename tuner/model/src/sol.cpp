#include "model/sol.h"

#include <algorithm>

namespace tunerd {
namespace {

Result<std::int64_t> cost_of(const Expr& expr, const char* field, const OpSpec& op, const Symbols& symbols) {
  auto cost = expr.eval(symbols);
  if (!cost) {
    Error error = cost.error();
    error.message = "Cannot compute " + std::string(field) + " of op " + op.name + ": " + error.message;
    error.field = field;
    return Unexpected(std::move(error));
  }
  if (*cost < 0) return bad_input(field, std::to_string(*cost), "a count of at least 0 from " + expr.text());
  return cost;
}

}  // namespace

Result<Sol> speed_of_light(const OpSpec& op, const Problem& problem, const DeviceSpec& device) {
  TRY_ASSIGN(const Symbols symbols, problem_symbols(op, problem));
  Sol sol;
  TRY_ASSIGN(sol.flops, cost_of(op.flops, "flops", op, symbols));
  TRY_ASSIGN(sol.bytes, cost_of(op.fused_bytes, "fused_bytes", op, symbols));
  const std::string unit = op.compute == "fp32" ? "fp32" : std::string(to_string(problem.dtype));
  const auto peak = device.peak_flops.find(unit);
  if (peak == device.peak_flops.end()) {
    std::vector<std::string> known;
    for (const auto& [name, rate] : device.peak_flops) known.push_back(name);
    auto error = unknown_name("dtype", unit, known);
    error.value().message = "Device " + device.name + " has no peak for " + unit;
    return error;
  }
  if (!(peak->second > 0 && device.memory_bytes_per_s > 0))
    return bad_input("device", device.name, "a peak and a bandwidth above zero");
  sol.peak_flops_per_s = peak->second;
  sol.memory_bytes_per_s = device.memory_bytes_per_s;
  sol.t_compute_us = static_cast<double>(sol.flops) / sol.peak_flops_per_s * 1e6;
  sol.t_memory_us = static_cast<double>(sol.bytes) / sol.memory_bytes_per_s * 1e6;
  sol.t_sol_us = std::max(sol.t_compute_us, sol.t_memory_us);
  sol.bound = sol.t_compute_us >= sol.t_memory_us ? "compute" : "memory";
  sol.peaks_source = "datasheet: " + device.name;
  return sol;
}

Json to_json(const Sol& sol) {
  return {{"flops", sol.flops},
          {"bytes", sol.bytes},
          {"t_compute_us", sol.t_compute_us},
          {"t_memory_us", sol.t_memory_us},
          {"t_sol_us", sol.t_sol_us},
          {"bound", sol.bound},
          {"peak_flops_per_s", sol.peak_flops_per_s},
          {"memory_bytes_per_s", sol.memory_bytes_per_s},
          {"peaks_source", sol.peaks_source}};
}

}  // namespace tunerd
