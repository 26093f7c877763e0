// What a device can do at best (spec, from config/devices) and which devices are interchangeable (class).
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "model/expr.h"
#include "model/json_reader.h"
#include "model/result.h"

namespace tunerd {

// Peaks are dense, at boost clock. Rates per second; sizes in bytes.
struct DeviceSpec {
  std::string name;                        // "h200-sxm"
  std::string arch;                        // NVRTC architecture to compile for: "sm_90a"
  int cc = 0;                              // compute capability * 10: 90
  std::vector<std::string> product_names;  // as NVML gives them, to recognise the device
  std::int64_t sm_count = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t smem_per_block_bytes = 0;  // opt-in maximum
  std::int64_t smem_per_sm_bytes = 0;
  std::int64_t registers_per_sm = 65536;
  std::int64_t threads_per_sm = 2048;
  double memory_bytes_per_s = 0;
  double boost_clock_hz = 0;
  // By dtype name: bf16, fp16, tf32, fp32 (vector), fp64, fp8, fp4, int8, all with fp32 (int32) accumulation; where
  // fp16 accumulation has another rate, that is fp16_acc_fp16 and fp8_acc_fp16.
  std::map<std::string, double> peak_flops;
  std::string source;  // where the peaks come from

  // sm_count, cc, smem_per_block_bytes, smem_per_sm_bytes, registers_per_sm, threads_per_sm, l2_bytes: for constraints.
  Symbols symbols() const;
};

Result<DeviceSpec> parse_device(const Json& document, const std::string& where);
Json to_json(const DeviceSpec& device);  // parse_device reads it back
// Every *.json of the folder, sorted by name. A name given twice is an error.
Result<std::vector<DeviceSpec>> load_devices(const std::filesystem::path& folder);
Result<DeviceSpec> find_device(const std::vector<DeviceSpec>& devices,
                               const std::string& name);  // near match on a miss
// The device that stands for an architecture when there is none: sm_80 a100-sxm-80gb, sm_86 a10, sm_89 l40s, sm_90a
// h200-sxm, sm_100a b200, sm_120a rtx-5090, sm_75 t4. Takes "sm_90" for "sm_90a" and so on. Errors list the known
// architectures.
Result<DeviceSpec> representative_device(const std::vector<DeviceSpec>& devices, const std::string& arch);
// "sm_90" -> "sm_90a", "sm_100" -> "sm_100a", "sm_120" -> "sm_120a", others unchanged: the variant with all
// instructions.
std::string full_arch(const std::string& arch);
Result<int> arch_cc(const std::string& arch);  // "sm_90a" -> 90; error for anything else

// Devices with equal keys are interchangeable for tuning.
struct DeviceClass {
  std::string arch;  // "sm_90a"
  std::string kind;  // "cuda" | "offline" | "replay"
  std::int64_t sm_count = 0;
  std::int64_t memory_gb_per_s = 0;  // from the driver's clock and bus width, rounded to 10; from the spec when offline
  std::string mig = "none";          // MIG profile
  std::int64_t power_cap_w = 0;      // 0 when unknown

  std::string key() const;  // "cuda/sm_90a/132sm/4800GBps/mig=none/700W"
  bool operator==(const DeviceClass&) const = default;
};
Json to_json(const DeviceClass& device_class);
// Errors: another kind than the three, a negative number. No device at all is not a class.
Result<DeviceClass> device_class_from_json(const Json& json);

}  // namespace tunerd
