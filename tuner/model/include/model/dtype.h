// Element types, by the names the field uses.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/result.h"

namespace tunerd {

enum class DType { bf16, fp16, fp32, fp64, int32 };

std::string_view to_string(DType dtype);
Result<DType> dtype_from_string(std::string_view text, const std::string& field = "dtype");
std::int64_t size_bytes(DType dtype);
double epsilon(DType dtype);  // half a unit in the last place of 1.0: the largest relative rounding error (0 for int32)

}  // namespace tunerd
