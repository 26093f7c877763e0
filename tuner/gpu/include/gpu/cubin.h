// Reading a cubin without a driver: is it an ELF for CUDA, does it hold the entry, what are the entry's parameters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/recipe.h"

namespace tunerd::gpu {

struct KernelParameter {
  std::int64_t ordinal = 0, offset_bytes = 0, size_bytes = 0;
};

struct CubinKernel {
  std::string entry;
  int cc = 0;                               // what it was compiled for, times 10: 90
  std::vector<KernelParameter> parameters;  // by ordinal
};

// Every offset and size is checked against the file: hostile bytes are an error (Code::corrupt), never a crash.
// An entry that is not there is Code::not_found and lists those that are.
Result<CubinKernel> find_kernel(std::string_view cubin, const std::string& entry);

// The kernel's parameters against the recipe's arguments: their number, and each one's size (pointer 8, i32 and f32 4,
// i64 8, tensor map 128).
Status check_parameters(const CubinKernel& kernel, const Recipe& recipe);

// Whether the cubin is for `arch` ("sm_90a"); a cubin does not tell sm_90 from sm_90a.
Status check_arch(const CubinKernel& kernel, const std::string& arch);

}  // namespace tunerd::gpu
