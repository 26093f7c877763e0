#include "search/model.h"

#include <algorithm>
#include <cmath>

namespace tunerd {
namespace {

constexpr double kLaunchFloorUs = 2.0;
constexpr double kL2BytesPerSecond = 5.5e12;  // of a device with kL2Sms SMs
constexpr double kL2Sms = 132;
constexpr double kReachableBandwidth = 0.9;
constexpr double kDramLatencySeconds = 700e-9;
constexpr double kBytesInFlightPerThread = 32;
constexpr double kSmemInFlight = 0.75;  // of a multi-stage buffer: the stage being read is not being filled
constexpr std::int64_t kReservedSmemBytes = 1024;
constexpr std::int64_t kMaxBlocksPerSm = 32;
constexpr double kUs = 1e6;

Result<double> value_of(const Expr& expr, const char* part, const std::string& name, const ResolvedVariant& variant) {
  const std::string field = name + ".cost." + part;
  Result<std::int64_t> value = expr.eval(variant.symbols);
  if (!value) {
    Error error = std::move(value).error();
    error.message = field + ": " + error.message;
    error.field = field;
    return Unexpected(std::move(error));
  }
  if (*value < 0) return bad_input(field, std::to_string(*value), "no negative value");
  return static_cast<double>(*value);
}

double blocks_per_sm(const ResolvedVariant& variant, const DeviceSpec& device) {
  std::int64_t blocks = std::min(kMaxBlocksPerSm, device.threads_per_sm / std::max<std::int64_t>(variant.threads, 1));
  if (variant.dynamic_smem_bytes > 0) {
    blocks = std::min(blocks, device.smem_per_sm_bytes / (variant.dynamic_smem_bytes + kReservedSmemBytes));
  }
  return static_cast<double>(std::max<std::int64_t>(blocks, 1));
}

// Little's law: bandwidth needs bytes in flight, and a few small blocks do not hold enough of them.
double reach(const ResolvedVariant& variant, double resident_blocks, const DeviceSpec& device) {
  constexpr double kLeast = 0.01;
  const double per_block = std::max(static_cast<double>(variant.threads) * kBytesInFlightPerThread,
                                    static_cast<double>(variant.dynamic_smem_bytes) * kSmemInFlight);
  const double needed = device.memory_bytes_per_s * kDramLatencySeconds;
  return needed > 0 ? std::clamp(resident_blocks * per_block / needed, kLeast, 1.0) : 1.0;
}

}  // namespace

Result<CostModel> CostModel::make(const Manifest& manifest, const OpSpec& op, const Problem& problem,
                                  const DeviceSpec& device, const VariantResolver& resolver) {
  CostModel model;
  TRY_ASSIGN(model.sol_, speed_of_light(op, problem, device));
  model.name_ = manifest.name;
  model.device_ = device;
  const Symbols& known = resolver.problem_symbols();
  const CostSpec& cost = manifest.cost;
  model.cost_ = CostSpec{cost.tiles.bind(known),
                         cost.tile_flops.bind(known),
                         cost.tile_bytes.bind(known),
                         cost.dram_bytes.bind(known),
                         cost.serial_steps.bind(known),
                         cost.step_latency_ns.bind(known),
                         cost.efficiency_permille.bind(known)};
  return model;
}

Result<double> CostModel::predict_us(const VariantResolver& resolver, const ResolvedVariant& variant) const {
  TRY_ASSIGN(double tiles, value_of(cost_.tiles, "tiles", name_, variant));
  TRY_ASSIGN(double tile_flops, value_of(cost_.tile_flops, "tile_flops", name_, variant));
  TRY_ASSIGN(const double tile_bytes, value_of(cost_.tile_bytes, "tile_bytes", name_, variant));
  TRY_ASSIGN(double dram_bytes, value_of(cost_.dram_bytes, "dram_bytes", name_, variant));
  TRY_ASSIGN(const double serial_steps, value_of(cost_.serial_steps, "serial_steps", name_, variant));
  TRY_ASSIGN(const double step_latency_ns, value_of(cost_.step_latency_ns, "step_latency_ns", name_, variant));
  TRY_ASSIGN(const double permille, value_of(cost_.efficiency_permille, "efficiency_permille", name_, variant));
  if (permille < 1 || permille > 1000) {
    return bad_input(name_ + ".cost.efficiency_permille", std::to_string(static_cast<std::int64_t>(permille)),
                     "1 to 1000");
  }
  if (tiles == 0) {
    TRY_ASSIGN(const std::int64_t blocks, resolver.blocks(variant));
    tiles = static_cast<double>(std::max<std::int64_t>(blocks, 1));
  }
  if (tile_flops == 0) tile_flops = static_cast<double>(sol_.flops) / tiles;
  if (dram_bytes == 0) dram_bytes = static_cast<double>(sol_.bytes);

  const double sms = static_cast<double>(std::max<std::int64_t>(device_.sm_count, 1));
  const double per_sm = blocks_per_sm(variant, device_);
  const double slots = sms * per_sm;
  const double waves = std::ceil(tiles / slots);
  const double full_waves = std::floor(tiles / slots);
  const double tiles_of_fullest_sm = full_waves * per_sm + std::ceil((tiles - full_waves * slots) / sms);

  const double compute_s = tiles_of_fullest_sm * tile_flops / (sol_.peak_flops_per_s / sms * (permille / 1000));
  const double l2_s = tiles * tile_bytes / (kL2BytesPerSecond * sms / kL2Sms);
  const double dram_s =
      dram_bytes / (kReachableBandwidth * sol_.memory_bytes_per_s * reach(variant, std::min(tiles, slots), device_));
  const double latency_s = waves * serial_steps * step_latency_ns * 1e-9;
  return kLaunchFloorUs + (std::max({compute_s, l2_s, dram_s}) + latency_s) * kUs;
}

Result<double> predict_us(const Manifest& manifest, const OpSpec& op, const KernelSpec& kernel, const Problem& problem,
                          const DeviceSpec& device) {
  TRY_ASSIGN(const VariantResolver resolver, VariantResolver::make(manifest, op, problem, device));
  TRY_ASSIGN(const std::vector<std::int64_t> values, resolver.values_of(kernel.variant));
  ResolvedVariant resolved;
  TRY(resolver.resolve(values, resolved));
  TRY_ASSIGN(const CostModel model, CostModel::make(manifest, op, problem, device, resolver));
  return model.predict_us(resolver, resolved);
}

}  // namespace tunerd
