#include "gpu/driver.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

namespace tunerd::gpu {

Result<DriverApi> DriverApi::load() {
  DriverApi api;
  TRY_ASSIGN(api.library, Library::open("The CUDA driver", {"libcuda.so.1"}));
  const auto& lib = api.library;
  TRY(lib.bind(api.init, "cuInit"));
  TRY(lib.bind(api.driver_version, "cuDriverGetVersion"));
  TRY(lib.bind(api.error_name, "cuGetErrorName"));
  TRY(lib.bind(api.device_count, "cuDeviceGetCount"));
  TRY(lib.bind(api.device_get, "cuDeviceGet"));
  TRY(lib.bind(api.device_name, "cuDeviceGetName"));
  TRY(lib.bind(api.device_attribute, "cuDeviceGetAttribute"));
  TRY(lib.bind(api.pci_bus_id, "cuDeviceGetPCIBusId"));
  TRY(lib.bind(api.total_memory, "cuDeviceTotalMem_v2"));
  TRY(lib.bind(api.primary_retain, "cuDevicePrimaryCtxRetain"));
  TRY(lib.bind(api.set_current, "cuCtxSetCurrent"));
  TRY(lib.bind(api.module_load, "cuModuleLoadData"));
  TRY(lib.bind(api.module_unload, "cuModuleUnload"));
  TRY(lib.bind(api.module_function, "cuModuleGetFunction"));
  TRY(lib.bind(api.set_attribute, "cuFuncSetAttribute"));
  TRY(lib.bind(api.allocate, "cuMemAlloc_v2"));
  TRY(lib.bind(api.release, "cuMemFree_v2"));
  TRY(lib.bind(api.memory_info, "cuMemGetInfo_v2"));
  TRY(lib.bind(api.memset8, "cuMemsetD8Async"));
  TRY(lib.bind(api.to_host, "cuMemcpyDtoHAsync_v2"));
  TRY(lib.bind(api.from_host, "cuMemcpyHtoDAsync_v2"));
  TRY(lib.bind(api.stream_create, "cuStreamCreate"));
  TRY(lib.bind(api.stream_query, "cuStreamQuery"));
  TRY(lib.bind(api.stream_synchronize, "cuStreamSynchronize"));
  TRY(lib.bind(api.begin_capture, "cuStreamBeginCapture_v2"));
  TRY(lib.bind(api.end_capture, "cuStreamEndCapture"));
  TRY(lib.bind(api.graph_instantiate, "cuGraphInstantiateWithFlags"));
  TRY(lib.bind(api.graph_launch, "cuGraphLaunch"));
  TRY(lib.bind(api.graph_exec_destroy, "cuGraphExecDestroy"));
  TRY(lib.bind(api.graph_destroy, "cuGraphDestroy"));
  TRY(lib.bind(api.event_create, "cuEventCreate"));
  TRY(lib.bind(api.event_destroy, "cuEventDestroy_v2"));
  TRY(lib.bind(api.event_record, "cuEventRecord"));
  TRY(lib.bind(api.event_elapsed, "cuEventElapsedTime"));
  TRY(lib.bind(api.launch, "cuLaunchKernelEx"));
  TRY(lib.bind(api.encode_tiled, "cuTensorMapEncodeTiled"));
  return api;
}

Status DriverApi::check(CUresult result, const char* what) const {
  if (result == CUDA_SUCCESS) return {};
  const char* name = nullptr;
  if (error_name(result, &name) != CUDA_SUCCESS || name == nullptr) name = "an unknown error";
  Error error;
  error.code = result == CUDA_ERROR_OUT_OF_MEMORY ? Code::busy : Code::device;
  error.message = std::string(what) + ": " + name;
  error.field = "cuda";
  error.value = name;
  return Unexpected(std::move(error));
}

bool is_fatal(const Error& error) {
  static constexpr std::array<const char*, 11> kFatal{"CUDA_ERROR_ILLEGAL_ADDRESS",
                                                      "CUDA_ERROR_LAUNCH_FAILED",
                                                      "CUDA_ERROR_LAUNCH_TIMEOUT",
                                                      "CUDA_ERROR_ASSERT",
                                                      "CUDA_ERROR_HARDWARE_STACK_ERROR",
                                                      "CUDA_ERROR_ILLEGAL_INSTRUCTION",
                                                      "CUDA_ERROR_MISALIGNED_ADDRESS",
                                                      "CUDA_ERROR_INVALID_ADDRESS_SPACE",
                                                      "CUDA_ERROR_INVALID_PC",
                                                      "CUDA_ERROR_ECC_UNCORRECTABLE",
                                                      "CUDA_ERROR_UNKNOWN"};
  if (error.code == Code::deadline) return true;
  return error.code == Code::device &&
         std::any_of(kFatal.begin(), kFatal.end(), [&](const char* name) { return error.value == name; });
}

Result<std::unique_ptr<Device>> Device::open(int ordinal, double launch_deadline_s) {
  auto device = std::make_unique<Device>();
  TRY_ASSIGN(device->api_, DriverApi::load());
  const auto& api = device->api_;
  TRY(api.check(api.init(0), "The CUDA driver does not start (cuInit)"));
  int count = 0;
  TRY(api.check(api.device_count(&count), "cuDeviceGetCount"));
  if (ordinal < 0 || ordinal >= count)
    return bad_input("device", std::to_string(ordinal), "a device from 0 to " + std::to_string(count - 1));
  TRY(api.check(api.device_get(&device->device_, ordinal), "cuDeviceGet"));
  char text[256] = {};
  TRY(api.check(api.device_name(text, sizeof text, device->device_), "cuDeviceGetName"));
  device->name_ = text;
  TRY(api.check(api.pci_bus_id(text, sizeof text, device->device_), "cuDeviceGetPCIBusId"));
  device->pci_ = text;
  TRY(api.check(api.primary_retain(&device->context_, device->device_), "cuDevicePrimaryCtxRetain"));
  TRY(api.check(api.set_current(device->context_), "cuCtxSetCurrent"));
  TRY(api.check(api.stream_create(&device->stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate"));
  device->launch_deadline_s_ = launch_deadline_s;
  return device;
}

Status Device::check(CUresult result, const char* what) const {
  auto status = api_.check(result, what);
  if (!status && is_fatal(status.error())) lost_ = true;
  return status;
}

std::int64_t Device::attribute(CUdevice_attribute attribute) const {
  int value = 0;
  return api_.device_attribute(&value, attribute, device_) == CUDA_SUCCESS ? value : 0;
}

std::string Device::arch() const {
  const auto cc = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
                  attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  return "sm_" + std::to_string(cc) + (cc >= 90 ? "a" : "");
}

std::int64_t Device::memory_bytes_per_s() const {
  const std::int64_t khz = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
                     bits = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  return khz * 1000 * 2 * (bits / 8);
}

Json Device::facts() const {
  std::size_t total = 0;
  api_.total_memory(&total, device_);
  return {{"sm_count", attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)},
          {"l2_bytes", l2_bytes()},
          {"smem_per_block_bytes", attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)},
          {"smem_per_sm_bytes", attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)},
          {"registers_per_sm", attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)},
          {"threads_per_sm", attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)},
          {"sm_clock_khz", attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE)},
          {"memory_bytes_per_s", memory_bytes_per_s()},
          {"memory_bytes", static_cast<std::int64_t>(total)}};
}

Result<std::int64_t> Device::free_bytes() const {
  std::size_t free = 0, total = 0;
  TRY(check(api_.memory_info(&free, &total), "cuMemGetInfo"));
  return static_cast<std::int64_t>(free);
}

Status Device::wait_for(double limit_s, const char* what) const {
  const auto started = std::chrono::steady_clock::now();
  const auto limit = std::chrono::duration<double>(limit_s);
  for (int spins = 0;; ++spins) {
    const CUresult state = api_.stream_query(stream_);
    if (state == CUDA_SUCCESS) return {};
    if (state != CUDA_ERROR_NOT_READY) {
      lost_ = true;  // what a stream reports is what ran on it, and that stays with the context
      return check(state, (std::string(what) + " failed").c_str());
    }
    if (std::chrono::steady_clock::now() - started > limit) {
      lost_ = true;
      char seconds[32];
      std::snprintf(seconds, sizeof seconds, "%g", limit_s);
      return fail(Code::deadline, std::string(what) + " did not end within " + seconds + " s");
    }
    if (spins > 2000) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(pointer_, other.pointer_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Buffer::~Buffer() {
  if (pointer_ != 0 && !device_->lost()) device_->api().release(pointer_);
}

Result<Buffer> Buffer::allocate(const Device& device, std::int64_t bytes) {
  Buffer buffer;
  TRY(device.check(device.api().allocate(&buffer.pointer_, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1))),
                   ("Allocating " + std::to_string(bytes) + " bytes on the device").c_str()));
  buffer.device_ = &device;
  buffer.bytes_ = bytes;
  return buffer;
}

Module& Module::operator=(Module&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(module_, other.module_);
  return *this;
}

Module::~Module() {
  if (module_ != nullptr && !device_->lost()) device_->api().module_unload(module_);
}

Result<Module> Module::load(const Device& device, std::string_view cubin) {
  Module module;
  const std::string copy(cubin);  // the driver wants it null-terminated
  TRY(device.check(device.api().module_load(&module.module_, copy.c_str()), "Loading the cubin"));
  module.device_ = &device;
  return module;
}

Result<CUfunction> Module::function(const std::string& entry) const {
  CUfunction function = nullptr;
  TRY(device_->check(device_->api().module_function(&function, module_, entry.c_str()),
                     ("Finding the kernel " + entry).c_str()));
  return function;
}

}  // namespace tunerd::gpu
