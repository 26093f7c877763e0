#include "device.h"

#include <dlfcn.h>

#include <stdexcept>

namespace example {
namespace {

struct Driver {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

  // Every driver function returns a CUresult.
  template <class... Args>
  int call(const char* name, Args... args) const {
    auto* function = reinterpret_cast<int (*)(Args...)>(library == nullptr ? nullptr : ::dlsym(library, name));
    return function == nullptr ? -1 : function(args...);
  }
  template <class... Args>
  void must(const char* name, Args... args) const {
    if (const int result = call(name, args...); result != 0)
      throw std::runtime_error(std::string(name) + " failed with CUresult " + std::to_string(result));
  }
};

const Driver& driver() {
  static const Driver instance;
  return instance;
}

}  // namespace

std::optional<Device> Device::open(std::string& why_not) {
  if (driver().library == nullptr) {
    why_not = "libcuda.so.1 is not installed";
    return std::nullopt;
  }
  int count = 0;
  if (driver().call("cuInit", 0u) != 0 || driver().call("cuDeviceGetCount", &count) != 0 || count == 0) {
    why_not = "the NVIDIA driver sees no GPU";
    return std::nullopt;
  }
  int device = 0;
  void* context = nullptr;
  char name[128] = {};
  driver().must("cuDeviceGet", &device, 0);
  driver().must("cuDeviceGetName", static_cast<char*>(name), static_cast<int>(sizeof name), device);
  driver().must("cuDevicePrimaryCtxRetain", &context, device);
  driver().must("cuCtxSetCurrent", context);
  Device out;
  out.name_ = name;
  driver().must("cuStreamCreate", &out.stream_, 1u);  // non-blocking
  return out;
}

std::uint64_t Device::allocate(std::size_t bytes) const {
  std::uint64_t data = 0;
  driver().must("cuMemAlloc_v2", &data, bytes);
  return data;
}

void Device::upload(std::uint64_t to, const void* from, std::size_t bytes) const {
  driver().must("cuMemcpyHtoD_v2", to, from, bytes);
}

void Device::download(void* to, std::uint64_t from, std::size_t bytes) const {
  driver().must("cuStreamSynchronize", stream_);
  driver().must("cuMemcpyDtoH_v2", to, from, bytes);
}

}  // namespace example
