// NVML: what state the device is in, who else uses it, its power cap and MIG mode. Optional: without the library every
// reading is absent.
#pragma once

#include <memory>
#include <string>

#include "model/json_reader.h"

namespace tunerd::gpu {

class Nvml {
 public:
  // `pci_bus_id` picks the device. Never fails: error() says why readings are absent.
  explicit Nvml(const std::string& pci_bus_id);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  const std::string& error() const { return error_; }
  std::string driver_version() const;  // "580.159.04", or "unknown"
  std::string product_name() const;    // "NVIDIA H200", or ""
  std::int64_t power_cap_w() const;    // 0 when unknown
  bool mig_enabled() const;
  // sm_clock_mhz, memory_clock_mhz, power_w, temperature_c, throttle (list of words), foreign_processes (pids but
  // ours). Absent readings are left out.
  Json state() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::string error_;
};

// Why a sample between these two states must not be used: a foreign process that computes, or a thermal or hardware
// slowdown. Empty when it may. A power cap is not one: large tensor kernels run under it as a rule.
std::string taint_of(const Json& before, const Json& after);

}  // namespace tunerd::gpu
