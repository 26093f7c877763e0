// The analytic time model: ranks variants before any is compiled. It ranks, it does not prove.
//
//   T = launch floor + max(compute, L2, DRAM) + latency
//
//   blocks per SM  what threads_per_sm and smem_per_sm_bytes (1 KiB a block reserved) hold, at most 32
//   waves          ceil(tiles / (SMs x blocks per SM))
//   compute        tiles on the fullest SM x tile_flops / (peak per SM x efficiency); tile_flops 0: the op's
//   flops/tiles L2             tiles x tile_bytes / (5.5 TB/s scaled by SMs/132) DRAM           dram_bytes (0: the op's
//   fused bytes) / (0.9 x bandwidth x reach). Reach is the share of the bandwidth
//                  that the bytes in flight can keep busy over 700 ns: 32 a resident thread, or three quarters of
//                  the block's dynamic shared memory when that is more
//   latency        waves x serial_steps x step_latency_ns
//   launch floor   2 us
#pragma once

#include "model/manifest.h"
#include "model/sol.h"
#include "model/variant_resolver.h"

namespace tunerd {

// One template's cost on one problem and device, ready for many variants.
class CostModel {
 public:
  // Errors: as speed_of_light.
  static Result<CostModel> make(const Manifest& manifest, const OpSpec& op, const Problem& problem,
                                const DeviceSpec& device, const VariantResolver& resolver);
  // Microseconds. `resolver` is the one given to make. Errors, naming the part of cost: an expression that fails, a
  // negative value, an efficiency outside 1..1000.
  Result<double> predict_us(const VariantResolver& resolver, const ResolvedVariant& variant) const;

 private:
  CostSpec cost_;
  std::string name_;
  Sol sol_;
  DeviceSpec device_;
};

// The same for one variant. Errors: also as check_variant.
Result<double> predict_us(const Manifest& manifest, const OpSpec& op, const KernelSpec& kernel, const Problem& problem,
                          const DeviceSpec& device);

}  // namespace tunerd
