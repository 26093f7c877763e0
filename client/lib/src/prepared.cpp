#include "prepared.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tunerd::client {
namespace {

constexpr std::int64_t kMaxMapDim = std::int64_t{1} << 32;
constexpr std::int64_t kMaxMapStride = std::int64_t{1} << 40;
constexpr std::int64_t kMaxBox = 256;

std::size_t tensor_index(const Recipe& recipe, const std::string& name) {
  const auto found = std::find_if(recipe.tensors.begin(), recipe.tensors.end(),
                                  [&](const RecipeTensor& tensor) { return tensor.name == name; });
  return static_cast<std::size_t>(found - recipe.tensors.begin());
}

Result<int> position(const std::vector<std::string>& names, const std::string& name, const std::string& field) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return unknown_name(field, name, names);
  return static_cast<int>(found - names.begin());
}

int map_type(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return cu::kTypeBf16;
    case DType::fp16:
      return cu::kTypeFp16;
    case DType::fp32:
      return cu::kTypeFp32;
    case DType::fp64:
      return cu::kTypeFp64;
    case DType::int32:
      break;
  }
  return cu::kTypeInt32;
}

// The expression's value within [low, high].
Result<std::int64_t> bounded(const Expr& expr, const Symbols& symbols, const std::string& field, std::int64_t low,
                             std::int64_t high) {
  auto value = expr.eval(symbols);
  if (!value) {
    Error error = value.error();
    error.message = field + ": " + error.message;
    return Unexpected(std::move(error));
  }
  if (*value < low || *value > high)
    return bad_input(field, std::to_string(*value), std::to_string(low) + " to " + std::to_string(high));
  return *value;
}

Result<PreparedMap> prepare_map(const Recipe& recipe, std::size_t index, const Symbols& symbols) {
  const Argument& argument = recipe.arguments[index];
  const TensorMap& map = argument.map;
  const std::string field = "tensor_map " + argument.name;
  PreparedMap out;
  out.argument = index;
  out.tensor = tensor_index(recipe, argument.name);
  out.type = map_type(map.dtype);
  out.rank = static_cast<std::uint32_t>(map.dims.size());
  TRY_ASSIGN(out.swizzle, position({"none", "32B", "64B", "128B"}, map.swizzle, field + ".swizzle"));
  TRY_ASSIGN(out.l2_promotion, position({"none", "64B", "128B", "256B"}, map.l2_promotion, field + ".l2_promotion"));
  for (std::size_t i = 0; i < map.dims.size(); ++i) {
    TRY_ASSIGN(const std::int64_t extent,
               bounded(map.dims[i], symbols, field + ".dims[" + std::to_string(i) + "]", 1, kMaxMapDim));
    out.dims[i] = static_cast<std::uint64_t>(extent);
    out.box[i] = static_cast<std::uint32_t>(map.box[i]);
  }
  for (std::size_t i = 0; i < map.strides_bytes.size(); ++i) {
    const std::string name = field + ".strides_bytes[" + std::to_string(i) + "]";
    TRY_ASSIGN(const std::int64_t stride, bounded(map.strides_bytes[i], symbols, name, 16, kMaxMapStride - 1));
    if (stride % 16 != 0) return bad_input(name, std::to_string(stride), "a multiple of 16 bytes");
    out.strides[i] = static_cast<std::uint64_t>(stride);
  }
  return out;
}

Result<PreparedWorkspace> prepare_workspace(const Argument& argument, std::size_t index, const Symbols& symbols) {
  PreparedWorkspace out;
  out.argument = index;
  TRY_ASSIGN(out.bytes, bounded(argument.expr, symbols, "workspace", 0, std::int64_t{1} << 46));
  out.align_bytes = argument.align_bytes;
  TRY_ASSIGN(const int init, position({"none", "zero_once", "zero_each"}, argument.init, "workspace.init"));
  out.init = static_cast<PreparedWorkspace::Init>(init);
  return out;
}

Status check_map(const TensorMap& map, const std::string& field) {
  const std::size_t rank = map.dims.size();
  if (rank < 1 || rank > 5 || map.box.size() != rank || map.strides_bytes.size() + 1 != rank)
    return bad_input(field,
                     std::to_string(rank) + " dims, " + std::to_string(map.strides_bytes.size()) + " strides, " +
                         std::to_string(map.box.size()) + " box extents",
                     "1 to 5 dims, one stride fewer, as many box extents");
  for (const std::int64_t extent : map.box)
    if (extent < 1 || extent > kMaxBox)
      return bad_input(field + ".box", std::to_string(extent), "1 to " + std::to_string(kMaxBox));
  return {};
}

}  // namespace

Status check_bounds(const Recipe& recipe) {
  const auto at_most = [](const char* field, std::size_t count, std::size_t limit) -> Status {
    if (count <= limit) return {};
    return Unexpected(Error{Code::unsupported,
                            std::string("this client launches kernels of fewer ") + field,
                            field,
                            std::to_string(count),
                            "at most " + std::to_string(limit),
                            {}});
  };
  TRY(at_most("tensors", recipe.tensors.size(), kMaxTensors));
  TRY(at_most("arguments", recipe.arguments.size(), kMaxArguments));
  if (recipe.entry.empty()) return bad_input("recipe.entry", "nothing", "the kernel's name");
  std::vector<std::string> names;
  for (const RecipeTensor& tensor : recipe.tensors) {
    if (tensor.align_bytes < 1)
      return bad_input(tensor.name + ".align_bytes", std::to_string(tensor.align_bytes), "1 or more");
    names.push_back(tensor.name);
  }
  for (const Argument& argument : recipe.arguments) {
    const bool of_tensor = argument.kind == Argument::Kind::tensor || argument.kind == Argument::Kind::tensor_map;
    if (of_tensor && std::find(names.begin(), names.end(), argument.name) == names.end())
      return unknown_name("recipe.arguments", argument.name, names);
    if (argument.kind == Argument::Kind::tensor_map) TRY(check_map(argument.map, "tensor_map " + argument.name));
    if (argument.kind == Argument::Kind::workspace && (argument.align_bytes < 1 || argument.align_bytes > 4096 ||
                                                       (argument.align_bytes & (argument.align_bytes - 1)) != 0))
      return bad_input("workspace.align_bytes", std::to_string(argument.align_bytes), "a power of two of at most 4096");
    if (argument.kind == Argument::Kind::scalar && argument.type != "i32" && argument.type != "i64" &&
        argument.type != "f32")
      return unknown_name("scalar " + argument.name, argument.type, {"i32", "i64", "f32"});
  }
  return {};
}

Result<Prepared> prepare(const Recipe& recipe, const Symbols& symbols) {
  Prepared out;
  TRY_ASSIGN(out.launch, concrete_launch(recipe, symbols));
  for (std::size_t i = 0; i < recipe.arguments.size(); ++i) {
    const Argument& argument = recipe.arguments[i];
    if (argument.kind == Argument::Kind::tensor_map) {
      if (!recipe.tensors[tensor_index(recipe, argument.name)].present) continue;
      TRY_ASSIGN(PreparedMap map, prepare_map(recipe, i, symbols));
      out.maps.push_back(map);
    } else if (argument.kind == Argument::Kind::workspace) {
      TRY_ASSIGN(const PreparedWorkspace workspace, prepare_workspace(argument, i, symbols));
      out.workspaces.push_back(workspace);
      const std::int64_t align = workspace.align_bytes;
      out.workspace_bytes = (out.workspace_bytes + align - 1) / align * align + workspace.bytes;
      out.workspace_align_bytes = std::max(out.workspace_align_bytes, align);
    } else if (argument.kind == Argument::Kind::scalar && argument.type != "f32") {
      const bool narrow = argument.type == "i32";
      const std::int64_t low =
          narrow ? std::numeric_limits<std::int32_t>::min() : std::numeric_limits<std::int64_t>::min();
      const std::int64_t high =
          narrow ? std::numeric_limits<std::int32_t>::max() : std::numeric_limits<std::int64_t>::max();
      TRY_ASSIGN(const std::int64_t value, bounded(argument.expr, symbols, "scalar " + argument.name, low, high));
      // Little-endian: the first four bytes of the slot are the i32.
      out.slots[i] = static_cast<std::uint64_t>(value);
    }
  }
  return out;
}

}  // namespace tunerd::client
