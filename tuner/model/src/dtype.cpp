#include "model/dtype.h"

#include <array>
#include <string>

namespace tunerd {
namespace {

struct Info {
  DType dtype;
  std::string_view name;
  std::int64_t size_bytes;
  double epsilon;
};

constexpr std::array<Info, 5> kInfos{{
    {DType::bf16, "bf16", 2, 0x1p-8},
    {DType::fp16, "fp16", 2, 0x1p-11},
    {DType::fp32, "fp32", 4, 0x1p-24},
    {DType::fp64, "fp64", 8, 0x1p-53},
    {DType::int32, "int32", 4, 0.0},
}};

const Info& info(DType dtype) { return kInfos[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::string_view to_string(DType dtype) { return info(dtype).name; }
std::int64_t size_bytes(DType dtype) { return info(dtype).size_bytes; }
double epsilon(DType dtype) { return info(dtype).epsilon; }

Result<DType> dtype_from_string(std::string_view text, const std::string& field) {
  std::vector<std::string> names;
  for (const auto& entry : kInfos) {
    if (entry.name == text) return entry.dtype;
    names.emplace_back(entry.name);
  }
  return unknown_name(field, std::string(text), names);
}

}  // namespace tunerd
