// {"version":1, "entry":…, "tensors":[…], "arguments":[…], "launch":{…}, "checks":[…], "deterministic":…}
// Expressions are RPN. Fields that a kind of argument does not have are not written, and are refused when read.
#include <algorithm>
#include <cmath>

#include "model/recipe.h"

namespace tunerd {
namespace {

constexpr std::size_t kMaxItems = 64;  // tensors, arguments, checks
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 30;

Json exprs_to_json(const std::vector<Expr>& exprs) {
  Json array = Json::array();
  for (const Expr& expr : exprs) array.push_back(expr.rpn());
  return array;
}

Json tensor_to_json(const RecipeTensor& tensor) {
  return {{"name", tensor.name},
          {"output", tensor.output},
          {"present", tensor.present},
          {"dtype", to_string(tensor.dtype)},
          {"shape", exprs_to_json(tensor.shape)},
          {"stride", tensor.stride_symbol},
          {"align_bytes", tensor.align_bytes}};
}

Json argument_to_json(const Argument& argument) {
  switch (argument.kind) {
    case Argument::Kind::tensor:
      return {{"kind", "tensor"}, {"name", argument.name}};
    case Argument::Kind::scalar: {
      Json json{{"kind", "scalar"}, {"name", argument.name}, {"type", argument.type}};
      if (argument.type == "f32") {
        json["real"] = argument.real;
        json["default"] = argument.real_default;
      } else {
        json["expr"] = argument.expr.rpn();
      }
      return json;
    }
    case Argument::Kind::tensor_map:
      return {{"kind", "tensor_map"},
              {"name", argument.name},
              {"dtype", to_string(argument.map.dtype)},
              {"dims", exprs_to_json(argument.map.dims)},
              {"strides_bytes", exprs_to_json(argument.map.strides_bytes)},
              {"box", argument.map.box},
              {"swizzle", argument.map.swizzle},
              {"l2_promotion", argument.map.l2_promotion}};
    case Argument::Kind::workspace:
      break;
  }
  return {{"kind", "workspace"},
          {"bytes", argument.expr.rpn()},
          {"align_bytes", argument.align_bytes},
          {"init", argument.init}};
}

Json launch_to_json(const Launch& launch) {
  return {{"grid", exprs_to_json({launch.grid.begin(), launch.grid.end()})},
          {"block", launch.block},
          {"cluster", launch.cluster},
          {"dynamic_smem_bytes", launch.dynamic_smem_bytes},
          {"pdl", launch.pdl},
          {"cooperative", launch.cooperative}};
}

Status check_choice(const std::string& value, const std::vector<std::string>& choices, const std::string& path) {
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return {};
  return unknown_name(path, value, choices);
}

Result<std::int64_t> bounded(JsonReader& reader, const std::string& key, std::int64_t least, std::int64_t most) {
  TRY_ASSIGN(const std::int64_t value, reader.integer(key));
  if (value >= least && value <= most) return value;
  return bad_input(reader.path() + "." + key, std::to_string(value),
                   std::to_string(least) + " to " + std::to_string(most));
}

Result<Expr> read_expr(JsonReader& reader, const std::string& key) {
  const Json* value = reader.any(key);
  if (value == nullptr) return bad_input(reader.path() + "." + key, "(missing)", "an expression in RPN");
  return Expr::from_rpn(*value);
}

Result<std::vector<Expr>> read_exprs(JsonReader& reader, const std::string& key, std::size_t most) {
  TRY_ASSIGN(const Json* array, reader.array(key));
  if (array->size() > most) {
    return bad_input(reader.path() + "." + key, std::to_string(array->size()) + " values",
                     "at most " + std::to_string(most));
  }
  std::vector<Expr> exprs;
  for (const Json& item : *array) {
    TRY_ASSIGN(Expr expr, Expr::from_rpn(item));
    exprs.push_back(std::move(expr));
  }
  return exprs;
}

Result<std::vector<std::int64_t>> read_extents(JsonReader& reader, const std::string& key, std::size_t least_count,
                                               std::size_t most_count, std::int64_t most) {
  TRY_ASSIGN(const Json* array, reader.array(key));
  const std::string path = reader.path() + "." + key;
  if (array->size() < least_count || array->size() > most_count) {
    return bad_input(path, std::to_string(array->size()) + " values",
                     std::to_string(least_count) + " to " + std::to_string(most_count));
  }
  std::vector<std::int64_t> extents;
  for (const Json& item : *array) {
    const bool known = item.is_number_integer() && item >= 1 && item <= most;
    if (!known) return bad_input(path, item.dump(), "integers of 1 to " + std::to_string(most));
    extents.push_back(item.get<std::int64_t>());
  }
  return extents;
}

Result<std::array<std::int64_t, 3>> read_extent3(JsonReader& reader, const std::string& key) {
  TRY_ASSIGN(const std::vector<std::int64_t> extents, read_extents(reader, key, 3, 3, 1024));
  return std::array<std::int64_t, 3>{extents[0], extents[1], extents[2]};
}

Result<RecipeTensor> read_tensor(const Json& json, const std::string& path) {
  JsonReader reader(json, path);
  RecipeTensor tensor;
  TRY_ASSIGN(tensor.name, reader.string("name"));
  TRY_ASSIGN(tensor.output, reader.boolean_or("output", false));
  TRY_ASSIGN(tensor.present, reader.boolean_or("present", true));
  TRY_ASSIGN(const std::string dtype, reader.string("dtype"));
  TRY_ASSIGN(tensor.dtype, dtype_from_string(dtype, path + ".dtype"));
  TRY_ASSIGN(tensor.shape, read_exprs(reader, "shape", 8));
  TRY_ASSIGN(tensor.stride_symbol, reader.string_or("stride", ""));
  TRY_ASSIGN(tensor.align_bytes, bounded(reader, "align_bytes", 1, 64 << 10));
  TRY(reader.finish());
  return tensor;
}

Status read_scalar(JsonReader& reader, Argument& argument) {
  argument.kind = Argument::Kind::scalar;
  TRY_ASSIGN(argument.name, reader.string("name"));
  TRY_ASSIGN(argument.type, reader.string("type"));
  TRY(check_choice(argument.type, {"i32", "i64", "f32"}, reader.path() + ".type"));
  if (argument.type == "f32") {
    TRY_ASSIGN(argument.real, reader.string("real"));
    TRY_ASSIGN(argument.real_default, reader.number("default"));
    if (!std::isfinite(argument.real_default)) {
      return bad_input(reader.path() + ".default", std::to_string(argument.real_default), "a finite number");
    }
    return {};
  }
  TRY_ASSIGN(argument.expr, read_expr(reader, "expr"));
  return {};
}

Status read_tensor_map(JsonReader& reader, Argument& argument) {
  argument.kind = Argument::Kind::tensor_map;
  TensorMap& map = argument.map;
  TRY_ASSIGN(argument.name, reader.string("name"));
  TRY_ASSIGN(const std::string dtype, reader.string("dtype"));
  TRY_ASSIGN(map.dtype, dtype_from_string(dtype, reader.path() + ".dtype"));
  TRY_ASSIGN(map.dims, read_exprs(reader, "dims", 5));
  TRY_ASSIGN(map.strides_bytes, read_exprs(reader, "strides_bytes", 4));
  TRY_ASSIGN(map.box, read_extents(reader, "box", 1, 5, 256));
  if (map.dims.size() != map.box.size() || map.strides_bytes.size() + 1 != map.dims.size()) {
    return bad_input(reader.path() + ".box", std::to_string(map.box.size()) + " sizes",
                     "as many as dims, and one fewer strides_bytes");
  }
  TRY_ASSIGN(map.swizzle, reader.string("swizzle"));
  TRY(check_choice(map.swizzle, {"none", "32B", "64B", "128B"}, reader.path() + ".swizzle"));
  TRY_ASSIGN(map.l2_promotion, reader.string("l2_promotion"));
  return check_choice(map.l2_promotion, {"none", "64B", "128B", "256B"}, reader.path() + ".l2_promotion");
}

Status read_workspace(JsonReader& reader, Argument& argument) {
  argument.kind = Argument::Kind::workspace;
  argument.name = "workspace";
  TRY_ASSIGN(argument.expr, read_expr(reader, "bytes"));
  TRY_ASSIGN(argument.align_bytes, bounded(reader, "align_bytes", 1, 64 << 10));
  TRY_ASSIGN(argument.init, reader.string("init"));
  return check_choice(argument.init, {"none", "zero_once", "zero_each"}, reader.path() + ".init");
}

Result<Argument> read_argument(const Json& json, const std::string& path) {
  JsonReader reader(json, path);
  Argument argument;
  TRY_ASSIGN(const std::string kind, reader.string("kind"));
  TRY(check_choice(kind, {"tensor", "scalar", "tensor_map", "workspace"}, path + ".kind"));
  if (kind == "tensor") {
    TRY_ASSIGN(argument.name, reader.string("name"));
  } else if (kind == "scalar") {
    TRY(read_scalar(reader, argument));
  } else if (kind == "tensor_map") {
    TRY(read_tensor_map(reader, argument));
  } else {
    TRY(read_workspace(reader, argument));
  }
  TRY(reader.finish());
  return argument;
}

Result<Launch> read_launch(const Json& json, const std::string& path) {
  JsonReader reader(json, path);
  Launch launch;
  TRY_ASSIGN(const std::vector<Expr> grid, read_exprs(reader, "grid", 3));
  if (grid.size() != 3) return bad_input(path + ".grid", std::to_string(grid.size()) + " values", "3: x, y, z");
  std::copy(grid.begin(), grid.end(), launch.grid.begin());
  TRY_ASSIGN(launch.block, read_extent3(reader, "block"));
  TRY_ASSIGN(launch.cluster, read_extent3(reader, "cluster"));
  TRY_ASSIGN(launch.dynamic_smem_bytes, bounded(reader, "dynamic_smem_bytes", 0, kMaxBytes));
  TRY_ASSIGN(launch.pdl, reader.boolean_or("pdl", false));
  TRY_ASSIGN(launch.cooperative, reader.boolean_or("cooperative", false));
  TRY(reader.finish());
  return launch;
}

Status check_references(const Recipe& recipe) {
  std::vector<std::string> tensors;
  for (const RecipeTensor& tensor : recipe.tensors) tensors.push_back(tensor.name);
  for (std::size_t i = 0; i < recipe.arguments.size(); ++i) {
    const Argument& argument = recipe.arguments[i];
    const bool names_tensor = argument.kind == Argument::Kind::tensor || argument.kind == Argument::Kind::tensor_map;
    if (names_tensor) TRY(check_choice(argument.name, tensors, "recipe.arguments[" + std::to_string(i) + "].name"));
  }
  return {};
}

Result<const Json*> bounded_array(JsonReader& reader, const std::string& key) {
  TRY_ASSIGN(const Json* array, reader.array(key));
  if (array->size() <= kMaxItems) return array;
  return bad_input(reader.path() + "." + key, std::to_string(array->size()) + " items",
                   "at most " + std::to_string(kMaxItems));
}

}  // namespace

Json to_json(const Recipe& recipe) {
  Json tensors = Json::array(), arguments = Json::array();
  for (const RecipeTensor& tensor : recipe.tensors) tensors.push_back(tensor_to_json(tensor));
  for (const Argument& argument : recipe.arguments) arguments.push_back(argument_to_json(argument));
  return {{"version", recipe.version},
          {"entry", recipe.entry},
          {"tensors", std::move(tensors)},
          {"arguments", std::move(arguments)},
          {"launch", launch_to_json(recipe.launch)},
          {"checks", rules_to_json(recipe.checks)},
          {"deterministic", recipe.deterministic}};
}

Result<Recipe> recipe_from_json(const Json& json) {
  JsonReader reader(json, "recipe");
  Recipe recipe;
  TRY_ASSIGN(const std::int64_t version, reader.integer("version"));
  if (version != 1) {
    return Unexpected(Error{Code::unsupported,
                            "this client reads recipes of version 1 only",
                            "recipe.version",
                            std::to_string(version),
                            "1",
                            {}});
  }
  TRY_ASSIGN(recipe.entry, reader.string("entry"));
  TRY_ASSIGN(const Json* tensors, bounded_array(reader, "tensors"));
  for (std::size_t i = 0; i < tensors->size(); ++i) {
    TRY_ASSIGN(RecipeTensor tensor, read_tensor((*tensors)[i], "recipe.tensors[" + std::to_string(i) + "]"));
    recipe.tensors.push_back(std::move(tensor));
  }
  TRY_ASSIGN(const Json* arguments, bounded_array(reader, "arguments"));
  for (std::size_t i = 0; i < arguments->size(); ++i) {
    TRY_ASSIGN(Argument argument, read_argument((*arguments)[i], "recipe.arguments[" + std::to_string(i) + "]"));
    recipe.arguments.push_back(std::move(argument));
  }
  TRY_ASSIGN(const Json* launch, reader.object("launch"));
  TRY_ASSIGN(recipe.launch, read_launch(*launch, "recipe.launch"));
  TRY_ASSIGN(const Json* checks, bounded_array(reader, "checks"));
  TRY_ASSIGN(recipe.checks, rules_from_rpn(*checks));
  TRY_ASSIGN(recipe.deterministic, reader.boolean_or("deterministic", true));
  TRY(reader.finish());
  TRY(check_references(recipe));
  return recipe;
}

}  // namespace tunerd
