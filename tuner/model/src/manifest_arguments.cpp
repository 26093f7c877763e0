#include <algorithm>
#include <charconv>

#include "manifest_parts.h"

namespace tunerd {
namespace {

constexpr std::size_t kMaxArguments = 64;
constexpr std::size_t kMaxRank = 5;  // of a tensor map, by the hardware

std::vector<std::string> tensor_names(const OpSpec& op) {
  std::vector<std::string> names;
  for (const TensorSpec& tensor : op.tensors) names.push_back(tensor.name);
  return names;
}

Status check_tensor(const OpSpec& op, const std::string& name, const std::string& path) {
  if (op.tensor(name) != nullptr) return {};
  return unknown_name(path, name, tensor_names(op));
}

Status check_choice(const std::string& value, const std::vector<std::string>& choices, const std::string& path) {
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return {};
  return unknown_name(path, value, choices);
}

Result<std::vector<Expr>> parse_exprs(JsonReader& reader, const std::string& key, const ManifestScope& scope,
                                      Stage stage) {
  TRY_ASSIGN(const Json* array, reader.array(key));
  std::vector<Expr> exprs;
  for (std::size_t i = 0; i < array->size(); ++i) {
    TRY_ASSIGN(Expr expr, scope.expr((*array)[i], reader.path() + "." + key + "[" + std::to_string(i) + "]", stage));
    exprs.push_back(std::move(expr));
  }
  return exprs;
}

Status parse_scalar(JsonReader& reader, const OpSpec& op, const ManifestScope& scope, ArgumentSpec& argument) {
  argument.kind = Argument::Kind::scalar;
  TRY_ASSIGN(argument.name, reader.string("scalar"));
  TRY_ASSIGN(argument.type, reader.string("type"));
  TRY(check_choice(argument.type, {"i32", "i64", "f32"}, reader.path() + ".type"));
  if (argument.type == "f32") {
    TRY_ASSIGN(argument.real, reader.string("real"));
    std::vector<std::string> reals;
    for (const AttributeSpec& attribute : op.attributes) {
      if (attribute.real) reals.push_back(attribute.name);
    }
    return check_choice(argument.real, reals, reader.path() + ".real");
  }
  const Json* expr = reader.any("expr");
  if (expr == nullptr) return bad_input(reader.path() + ".expr", "(missing)", "an integer expression");
  TRY_ASSIGN(argument.expr, scope.expr(*expr, reader.path() + ".expr", Stage::sized));
  return {};
}

Status parse_swizzles(JsonReader& reader, TensorMapSpec& map) {
  const std::vector<std::string> swizzles{"none", "32B", "64B", "128B"};
  TRY_ASSIGN(map.swizzle, reader.string_or("swizzle", "none"));
  TRY(check_choice(map.swizzle, swizzles, reader.path() + ".swizzle"));
  TRY_ASSIGN(map.l2_promotion, reader.string_or("l2_promotion", "none"));
  TRY(check_choice(map.l2_promotion, {"none", "64B", "128B", "256B"}, reader.path() + ".l2_promotion"));
  if (!reader.has("swizzle_by_inner_bytes")) return {};
  TRY_ASSIGN(const Json* choices, reader.object("swizzle_by_inner_bytes"));
  const std::string field = reader.path() + ".swizzle_by_inner_bytes";
  for (const auto& [key, value] : members(*choices)) {
    std::int64_t inner_bytes = 0;
    const char* end = key.data() + key.size();
    const auto parsed = std::from_chars(key.data(), end, inner_bytes);
    if (parsed.ec != std::errc{} || parsed.ptr != end || inner_bytes < 1) {
      return bad_input(field, key, "keys that are a positive number of bytes");
    }
    if (!value->is_string()) return bad_input(field + "." + key, value->dump(), "a swizzle");
    TRY(check_choice(value->get<std::string>(), swizzles, field + "." + key));
    map.swizzle_by_inner_bytes[inner_bytes] = value->get<std::string>();
  }
  return {};
}

Status parse_tensor_map(JsonReader& reader, const OpSpec& op, const ManifestScope& scope, ArgumentSpec& argument) {
  argument.kind = Argument::Kind::tensor_map;
  TRY_ASSIGN(argument.name, reader.string("tensor_map"));
  TRY(check_tensor(op, argument.name, reader.path() + ".tensor_map"));
  TensorMapSpec& map = argument.map;
  TRY_ASSIGN(map.dims, parse_exprs(reader, "dims", scope, Stage::sized));
  TRY_ASSIGN(map.strides_bytes, parse_exprs(reader, "strides_bytes", scope, Stage::sized));
  TRY_ASSIGN(map.box, parse_exprs(reader, "box", scope, Stage::variant));
  const std::size_t rank = map.dims.size();
  if (rank < 1 || rank > kMaxRank) {
    return bad_input(reader.path() + ".dims", std::to_string(rank) + " dimensions", "1 to 5, innermost first");
  }
  if (map.strides_bytes.size() + 1 != rank) {
    return bad_input(reader.path() + ".strides_bytes", std::to_string(map.strides_bytes.size()) + " strides",
                     "one fewer than dims, from the second dimension on");
  }
  if (map.box.size() != rank) {
    return bad_input(reader.path() + ".box", std::to_string(map.box.size()) + " sizes", "as many as dims");
  }
  return parse_swizzles(reader, map);
}

Status parse_workspace(JsonReader& reader, const ManifestScope& scope, ArgumentSpec& argument) {
  argument.kind = Argument::Kind::workspace;
  argument.name = "workspace";
  TRY_ASSIGN(argument.expr, scope.expr(*reader.any("workspace"), reader.path() + ".workspace", Stage::sized));
  TRY_ASSIGN(argument.align_bytes, reader.integer_or("align_bytes", 256));
  TRY(check_alignment(argument.align_bytes, reader.path() + ".align_bytes"));
  TRY_ASSIGN(argument.init, reader.string_or("init", "none"));
  return check_choice(argument.init, {"none", "zero_once", "zero_each"}, reader.path() + ".init");
}

Result<ArgumentSpec> parse_argument(const Json& json, const std::string& path, const OpSpec& op,
                                    const ManifestScope& scope) {
  JsonReader reader(json, path);
  ArgumentSpec argument;
  if (reader.has("tensor")) {
    TRY_ASSIGN(argument.name, reader.string("tensor"));
    TRY(check_tensor(op, argument.name, path + ".tensor"));
  } else if (reader.has("scalar")) {
    TRY(parse_scalar(reader, op, scope, argument));
  } else if (reader.has("tensor_map")) {
    TRY(parse_tensor_map(reader, op, scope, argument));
  } else if (reader.has("workspace")) {
    TRY(parse_workspace(reader, scope, argument));
  } else {
    TRY(reader.finish());  // a mistyped kind gets its suggestion
    return bad_input(path, json.dump(), "an object with tensor, scalar, tensor_map or workspace");
  }
  TRY(reader.finish());
  return argument;
}

}  // namespace

Status parse_arguments(JsonReader& reader, const OpSpec& op, const ManifestScope& scope, Manifest& manifest) {
  TRY_ASSIGN(const Json* array, reader.array("arguments"));
  const std::string field = reader.path() + ".arguments";
  if (array->empty() || array->size() > kMaxArguments) {
    return bad_input(field, std::to_string(array->size()) + " arguments", "1 to " + std::to_string(kMaxArguments));
  }
  for (std::size_t i = 0; i < array->size(); ++i) {
    const std::string path = field + "[" + std::to_string(i) + "]";
    TRY_ASSIGN(ArgumentSpec argument, parse_argument((*array)[i], path, op, scope));
    const bool workspace = argument.kind == Argument::Kind::workspace;
    if (workspace && std::any_of(manifest.arguments.begin(), manifest.arguments.end(),
                                 [](const ArgumentSpec& other) { return other.kind == Argument::Kind::workspace; })) {
      return bad_input(path, "a second workspace", "at most one workspace: give its parts offsets in the kernel");
    }
    manifest.arguments.push_back(std::move(argument));
  }
  for (const TensorSpec& tensor : op.tensors) {
    const bool reached = std::any_of(manifest.arguments.begin(), manifest.arguments.end(),
                                     [&](const ArgumentSpec& argument) { return argument.name == tensor.name; });
    if (tensor.role == Role::output && !reached) {
      return bad_input(field, "no argument for " + tensor.name, "every output tensor of the op among the arguments");
    }
  }
  return {};
}

}  // namespace tunerd
