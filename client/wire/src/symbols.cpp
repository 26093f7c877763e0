#include "wire/symbols.h"

#include <algorithm>
#include <vector>

namespace tunerd::wire {
namespace {

Result<std::map<std::string, std::int64_t>> integers(const Json& problem, const char* key) {
  std::map<std::string, std::int64_t> out;
  const auto found = problem.find(key);
  if (found == problem.end() || found->is_null()) return out;
  if (!found->is_object()) return bad_input(key, found->dump().substr(0, 64), "an object of integers");
  for (const auto& [name, value] : found->items()) {
    if (!value.is_number_integer())
      return bad_input(std::string(key) + "." + name, value.dump().substr(0, 64), "an integer");
    out[name] = value.get<std::int64_t>();
  }
  return out;
}

}  // namespace

Result<Symbols> recipe_symbols(const Recipe& recipe, const std::map<std::string, std::int64_t>& dims,
                               const std::map<std::string, std::int64_t>& strides, DType dtype) {
  Symbols symbols;
  for (const auto& [name, value] : dims) symbols.set(name, value);
  symbols.set("dtype_bytes", size_bytes(dtype));
  std::vector<std::string> stride_names;
  for (const RecipeTensor& tensor : recipe.tensors) {
    symbols.set("has_" + tensor.name, tensor.present ? 1 : 0);
    if (!tensor.present) symbols.set("bytes_" + tensor.name, 0);
    std::int64_t elements = 1;
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      TRY_ASSIGN(const std::int64_t extent, tensor.shape[i].eval(symbols));
      if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements))
        return bad_input(tensor.name, std::to_string(extent), "a shape of at most 2^63-1 elements");
    }
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(elements, size_bytes(tensor.dtype), &bytes))
      return bad_input(tensor.name, std::to_string(elements) + " elements", "at most 2^63-1 bytes");
    if (tensor.present) symbols.set("bytes_" + tensor.name, bytes);
    if (tensor.stride_symbol.empty() || tensor.shape.size() != 2) continue;
    TRY_ASSIGN(const std::int64_t row, tensor.shape[1].eval(symbols));
    const auto padded = strides.find(tensor.stride_symbol);
    const std::int64_t stride = padded == strides.end() ? row : padded->second;
    if (stride < row)
      return bad_input(tensor.stride_symbol, std::to_string(stride),
                       "at least the row's " + std::to_string(row) + " elements");
    symbols.set(tensor.stride_symbol, stride);
    stride_names.push_back(tensor.stride_symbol);
  }
  for (const auto& [name, value] : strides)
    if (std::find(stride_names.begin(), stride_names.end(), name) == stride_names.end())
      return unknown_name("stride", name, stride_names);
  return symbols;
}

Result<Symbols> recipe_symbols(const Recipe& recipe, const Json& problem) {
  if (!problem.is_object()) return bad_input("problem_json", problem.dump().substr(0, 64), "an object");
  TRY_ASSIGN(const auto dims, integers(problem, "dims"));
  TRY_ASSIGN(const auto strides, integers(problem, "strides"));
  const auto dtype_text = problem.find("dtype");
  if (dtype_text == problem.end() || !dtype_text->is_string())
    return bad_input("problem_json.dtype", "nothing", "a dtype's name");
  TRY_ASSIGN(const DType dtype, dtype_from_string(dtype_text->get<std::string>(), "problem_json.dtype"));
  return recipe_symbols(recipe, dims, strides, dtype);
}

}  // namespace tunerd::wire
