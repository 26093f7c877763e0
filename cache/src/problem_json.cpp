#include "store_impl.h"

namespace tunerd::cache {
namespace {

template <class Value, class Read>
Status read_map(const Json& parent, const char* name, std::map<std::string, Value>& out, Read read) {
  if (!parent.contains(name)) return {};
  const Json& object = parent.at(name);
  if (!object.is_object()) return fail(Code::corrupt, std::string("The stored problem's ") + name + " is no object.");
  for (const auto& [key, value] : object.items()) {
    if (!read(value, out[key])) {
      return fail(Code::corrupt, std::string("The stored problem's ") + name + "." + key + " has a wrong type.");
    }
  }
  return {};
}

template <class T, class Is>
auto reader(Is is) {
  return [is](const Json& value, T& out) {
    if (!is(value)) return false;
    out = value.get<T>();
    return true;
  };
}

}  // namespace

Result<Problem> problem_from_row(const std::string& text) {
  TRY_ASSIGN(const Json json, parse_text(text, "problem"));
  Problem problem;
  if (!json.is_object() || !json.contains("op") || !json.at("op").is_string() || !json.contains("dtype") ||
      !json.at("dtype").is_string()) {
    return fail(Code::corrupt, "The stored problem lacks its op or dtype.");
  }
  problem.op = json.at("op").get<std::string>();
  TRY_ASSIGN(problem.dtype, dtype_from_string(json.at("dtype").get<std::string>()));
  const auto is_integer = [](const Json& value) { return value.is_number_integer(); };
  const auto is_number = [](const Json& value) { return value.is_number(); };
  const auto is_string = [](const Json& value) { return value.is_string(); };
  TRY(read_map(json, "dims", problem.dims, reader<std::int64_t>(is_integer)));
  TRY(read_map(json, "strides", problem.strides, reader<std::int64_t>(is_integer)));
  TRY(read_map(json, "reals", problem.reals, reader<double>(is_number)));
  TRY(read_map(json, "attributes", problem.attributes, reader<std::string>(is_string)));
  if (json.contains("allow_nondeterministic")) {
    if (!json.at("allow_nondeterministic").is_boolean()) {
      return fail(Code::corrupt, "The stored problem's allow_nondeterministic is no boolean.");
    }
    problem.allow_nondeterministic = json.at("allow_nondeterministic").get<bool>();
  }
  return problem;
}

}  // namespace tunerd::cache
