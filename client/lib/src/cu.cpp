#include "cu.h"

#include <dlfcn.h>

namespace tunerd::client::cu {
namespace {

template <class F>
bool find(void* library, const char* name, F& out) {
  out = reinterpret_cast<F>(::dlsym(library, name));
  return out != nullptr;
}

Result<Driver> open() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = ::dlerror();
    return fail(Code::missing,
                std::string("libcuda.so.1 not found: launching needs an NVIDIA driver on this machine (") +
                    (why == nullptr ? "no reason given" : why) + ")");
  }
  Driver out;
  find(library, "cuCtxGetId", out.cuCtxGetId);
  find(library, "cuLibraryLoadData", out.cuLibraryLoadData);
  find(library, "cuLibraryUnload", out.cuLibraryUnload);
  find(library, "cuLibraryGetKernel", out.cuLibraryGetKernel);
  find(library, "cuKernelGetFunction", out.cuKernelGetFunction);
  const char* missing = nullptr;
  const auto need = [&](const char* name, auto& slot) {
    if (!find(library, name, slot) && missing == nullptr) missing = name;
  };
  need("cuCtxGetCurrent", out.cuCtxGetCurrent);
  need("cuCtxPushCurrent_v2", out.cuCtxPushCurrent);
  need("cuCtxPopCurrent_v2", out.cuCtxPopCurrent);
  need("cuGetErrorName", out.cuGetErrorName);
  need("cuGetErrorString", out.cuGetErrorString);
  need("cuModuleLoadData", out.cuModuleLoadData);
  need("cuModuleUnload", out.cuModuleUnload);
  need("cuModuleGetFunction", out.cuModuleGetFunction);
  need("cuFuncSetAttribute", out.cuFuncSetAttribute);
  need("cuMemAlloc_v2", out.cuMemAlloc);
  need("cuMemFree_v2", out.cuMemFree);
  need("cuMemsetD8Async", out.cuMemsetD8Async);
  need("cuStreamIsCapturing", out.cuStreamIsCapturing);
  need("cuThreadExchangeStreamCaptureMode", out.cuThreadExchangeStreamCaptureMode);
  need("cuTensorMapEncodeTiled", out.cuTensorMapEncodeTiled);
  need("cuLaunchKernelEx", out.cuLaunchKernelEx);
  if (missing != nullptr)
    return Unexpected(Error{Code::unsupported,
                            "this NVIDIA driver is too old to launch kernels",
                            "libcuda.so.1",
                            std::string("no ") + missing,
                            "a driver for CUDA 12.0 or newer",
                            {}});
  return out;
}

}  // namespace

Result<const Driver*> driver() {
  static const Result<Driver> opened = open();
  if (!opened) return Unexpected(opened.error());
  return &*opened;
}

Unexpected Driver::error(const char* call, int result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  return Unexpected(Error{Code::device,
                          std::string(call) + " failed: " + (text == nullptr ? "unknown error" : text),
                          call,
                          name == nullptr ? std::to_string(result) : name,
                          "CUDA_SUCCESS",
                          {}});
}

Result<CurrentContext> current_context(const Driver& driver) {
  CurrentContext context;
  if (const int result = driver.cuCtxGetCurrent(&context.handle); result != 0)
    return driver.error("cuCtxGetCurrent", result);
  if (context.handle == nullptr)
    return fail(Code::device, "no CUDA context is current on this thread: create or set one before launching");
  if (driver.cuCtxGetId != nullptr) driver.cuCtxGetId(context.handle, &context.id);
  return context;
}

}  // namespace tunerd::client::cu
