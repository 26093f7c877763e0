// The device behind the measure role: a real one, or recordings of one.
#pragma once

#include <filesystem>
#include <memory>

#include "wire/worker.h"

namespace tunerd::gpu {

class MeasureDevice {
 public:
  virtual ~MeasureDevice() = default;
  // device_kind, product_name, device_class, driver, device_facts.
  virtual wire::WorkerHello hello() const = 0;
  // Never throws; whatever goes wrong is a status. "fault" means the process must end: the context is lost.
  virtual wire::MeasureResult run(const wire::MeasureJob& job) = 0;
};

// The CUDA device `ordinal`. Errors: no driver, no such device, NVRTC missing (the worker's own kernels need it).
Result<std::unique_ptr<MeasureDevice>> open_cuda_device(int ordinal, double launch_deadline_s);

// Recorded measurements, as tests/data/README.md describes: a file, or a folder of *.recording.json of one device
// class. Kind "replay": what it answers is never reported as measured. A variant that was not recorded is status
// "unsupported".
Result<std::unique_ptr<MeasureDevice>> open_replay_device(const std::filesystem::path& recording);

}  // namespace tunerd::gpu
