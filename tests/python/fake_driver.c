// libcuda.so.1 for tests without a GPU: everything works, nothing runs, and the last launch can be read.
#include <stddef.h>
#include <stdint.h>

int fake_launches, fake_param_count, fake_loads, fake_launch_result, fake_apart;
uint64_t fake_stream, fake_params[64];
unsigned fake_grid[3];
// Where not 0: launches whose second pointer is not the first plus this are counted in fake_apart.
uint64_t fake_distance;

static int thing;

int cuCtxGetCurrent(void** context) { return *context = &thing, 0; }
int cuCtxPushCurrent_v2(void* context) { return context == NULL; }
int cuCtxPopCurrent_v2(void** context) { return *context = &thing, 0; }
int cuGetErrorName(int result, const char** text) {
  return *text = result == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR", 0;
}
int cuGetErrorString(int result, const char** text) {
  return *text = result == 700 ? "an illegal memory access" : "an error", 0;
}
int cuModuleLoadData(void** module, const void* image) { return *module = &thing, ++fake_loads, image == NULL; }
int cuModuleUnload(void* module) { return module == NULL; }
int cuModuleGetFunction(void** function, void* module, const char* name) {
  return *function = &thing, module == NULL || name == NULL;
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  return function == NULL || attribute < 0 || value < 0;
}
int cuMemAlloc_v2(uint64_t* data, size_t bytes) { return *data = UINT64_C(1) << 33, bytes == 0; }
int cuMemFree_v2(uint64_t data) { return data == 0; }
int cuMemsetD8Async(uint64_t data, unsigned char value, size_t bytes, void* stream) {
  return (void)value, (void)bytes, (void)stream, data == 0;
}
int cuStreamIsCapturing(void* stream, int* capturing) { return (void)stream, *capturing = 0, 0; }
int cuThreadExchangeStreamCaptureMode(int* mode) { return mode == NULL; }
int cuTensorMapEncodeTiled(void* map) { return map == NULL; }

struct config {
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
};

int cuLaunchKernelEx(const struct config* config, void* function, void** parameters, void** extra) {
  (void)function, (void)extra;
  int count = 0;
  for (; count < 64 && parameters[count] != NULL; ++count) fake_params[count] = *(const uint64_t*)parameters[count];
  fake_param_count = count;
  if (fake_distance != 0 && *(const uint64_t*)parameters[1] != *(const uint64_t*)parameters[0] + fake_distance)
    __atomic_fetch_add(&fake_apart, 1, __ATOMIC_RELAXED);
  fake_stream = (uint64_t)(uintptr_t)config->stream;
  for (int i = 0; i < 3; ++i) fake_grid[i] = config->grid[i];
  __atomic_fetch_add(&fake_launches, 1, __ATOMIC_RELAXED);
  return fake_launch_result;
}
