// The few declarations of NVML's C ABI that are used here: toolkits often come without nvml.h, drivers always with the
// library. Source: NVML API reference, device queries and "clocks event reasons".
#pragma once

namespace tunerd::gpu::nvml {

using Return = int;
using Handle = void*;
inline constexpr Return kSuccess = 0, kNotFound = 6;
inline constexpr int kClockSm = 1, kClockMemory = 2;
inline constexpr int kTemperatureGpu = 0;
inline constexpr unsigned int kMigEnabled = 1;
inline constexpr unsigned int kTextBytes = 96;

inline constexpr unsigned long long kSwPowerCap = 0x4, kHwSlowdown = 0x8, kSyncBoost = 0x10, kSwThermal = 0x20,
                                    kHwThermal = 0x40, kPowerBrake = 0x80;

struct ProcessInfo {
  unsigned int pid;
  unsigned long long used_memory_bytes;
  unsigned int gpu_instance, compute_instance;
};

struct Utilization {
  unsigned int pid;
  unsigned long long time_us;  // since the epoch
  unsigned int sm_percent, memory_percent, encoder_percent, decoder_percent;
};

using Init = Return (*)();
using Text = Return (*)(char*, unsigned int);
using ByPci = Return (*)(const char*, Handle*);
using DeviceText = Return (*)(Handle, char*, unsigned int);
using Selected = Return (*)(Handle, int, unsigned int*);
using Number = Return (*)(Handle, unsigned int*);
using Bits = Return (*)(Handle, unsigned long long*);
using Processes = Return (*)(Handle, unsigned int*, ProcessInfo*);
using Utilizations = Return (*)(Handle, Utilization*, unsigned int*, unsigned long long);
using Mig = Return (*)(Handle, unsigned int*, unsigned int*);

}  // namespace tunerd::gpu::nvml
