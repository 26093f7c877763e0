// The CUDA driver, opened at run time, and the few objects the measure worker needs of it. Everything runs on one
// stream of one device's primary context. Errors are Code::device with CUDA's own name for the failure; is_fatal says
// whether the context survives.
#pragma once

#include <cuda.h>

#include <memory>
#include <string>
#include <string_view>

#include "gpu/library.h"
#include "model/json_reader.h"

namespace tunerd::gpu {

struct DriverApi {
  Library library;
  decltype(&::cuInit) init = nullptr;
  decltype(&::cuDriverGetVersion) driver_version = nullptr;
  decltype(&::cuGetErrorName) error_name = nullptr;
  decltype(&::cuDeviceGetCount) device_count = nullptr;
  decltype(&::cuDeviceGet) device_get = nullptr;
  decltype(&::cuDeviceGetName) device_name = nullptr;
  decltype(&::cuDeviceGetAttribute) device_attribute = nullptr;
  decltype(&::cuDeviceGetPCIBusId) pci_bus_id = nullptr;
  decltype(&::cuDeviceTotalMem) total_memory = nullptr;
  decltype(&::cuDevicePrimaryCtxRetain) primary_retain = nullptr;
  decltype(&::cuCtxSetCurrent) set_current = nullptr;
  decltype(&::cuModuleLoadData) module_load = nullptr;
  decltype(&::cuModuleUnload) module_unload = nullptr;
  decltype(&::cuModuleGetFunction) module_function = nullptr;
  decltype(&::cuFuncSetAttribute) set_attribute = nullptr;
  decltype(&::cuMemAlloc) allocate = nullptr;
  decltype(&::cuMemFree) release = nullptr;
  decltype(&::cuMemGetInfo) memory_info = nullptr;
  decltype(&::cuMemsetD8Async) memset8 = nullptr;
  decltype(&::cuMemcpyDtoHAsync) to_host = nullptr;
  decltype(&::cuMemcpyHtoDAsync) from_host = nullptr;
  decltype(&::cuStreamCreate) stream_create = nullptr;
  decltype(&::cuStreamQuery) stream_query = nullptr;
  decltype(&::cuStreamSynchronize) stream_synchronize = nullptr;
  decltype(&::cuStreamBeginCapture) begin_capture = nullptr;
  decltype(&::cuStreamEndCapture) end_capture = nullptr;
  decltype(&::cuGraphInstantiateWithFlags) graph_instantiate = nullptr;
  decltype(&::cuGraphLaunch) graph_launch = nullptr;
  decltype(&::cuGraphExecDestroy) graph_exec_destroy = nullptr;
  decltype(&::cuGraphDestroy) graph_destroy = nullptr;
  decltype(&::cuEventCreate) event_create = nullptr;
  decltype(&::cuEventDestroy) event_destroy = nullptr;
  decltype(&::cuEventRecord) event_record = nullptr;
  decltype(&::cuEventElapsedTime) event_elapsed = nullptr;
  decltype(&::cuLaunchKernelEx) launch = nullptr;
  decltype(&::cuTensorMapEncodeTiled) encode_tiled = nullptr;

  static Result<DriverApi> load();
  Status check(CUresult result, const char* what) const;
};

// A device with its primary context current on this thread, and one stream.
class Device {
 public:
  // Errors: no driver, no such device (says how many there are).
  static Result<std::unique_ptr<Device>> open(int ordinal, double launch_deadline_s);

  const DriverApi& api() const { return api_; }
  CUstream stream() const { return stream_; }
  const std::string& name() const { return name_; }
  const std::string& pci_bus_id() const { return pci_; }
  std::int64_t attribute(CUdevice_attribute attribute) const;
  std::int64_t l2_bytes() const { return attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE); }
  std::string arch() const;                 // "sm_90a"
  std::int64_t memory_bytes_per_s() const;  // clock x bus width x 2, 0 when the driver does not tell
  Json facts() const;
  Result<std::int64_t> free_bytes() const;
  // Waits for the stream, at most the launch deadline. Code::deadline when the work did not end. Whatever the failure,
  // the context is lost with it. `what` opens the message.
  Status wait(const char* what = "The kernel") const { return wait_for(launch_deadline_s_, what); }
  Status wait_for(double limit_s, const char* what) const;
  double launch_deadline_s() const { return launch_deadline_s_; }
  // A fatal failure marks the device lost.
  Status check(CUresult result, const char* what) const;
  // Once lost, nothing may be released any more: with a kernel that never ends even a free would wait for ever. The
  // process must end.
  bool lost() const { return lost_; }

 private:
  DriverApi api_;
  mutable bool lost_ = false;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::string name_, pci_;
  double launch_deadline_s_ = 10;
};

// Device memory, released with the object.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();
  static Result<Buffer> allocate(const Device& device, std::int64_t bytes);
  CUdeviceptr pointer() const { return pointer_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  const Device* device_ = nullptr;
  CUdeviceptr pointer_ = 0;
  std::int64_t bytes_ = 0;
};

// A loaded cubin, unloaded with the object.
class Module {
 public:
  Module() = default;
  Module(Module&& other) noexcept { *this = std::move(other); }
  Module& operator=(Module&& other) noexcept;
  ~Module();
  static Result<Module> load(const Device& device, std::string_view cubin);
  Result<CUfunction> function(const std::string& entry) const;

 private:
  const Device* device_ = nullptr;
  CUmodule module_ = nullptr;
};

// True when the failure poisons the context: every later call would fail, so the worker must be replaced.
bool is_fatal(const Error& error);

}  // namespace tunerd::gpu
