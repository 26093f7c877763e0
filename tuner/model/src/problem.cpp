#include "model/problem.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "json_text.h"

namespace tunerd {
namespace {

constexpr std::size_t kMaxFields = 256;

// A field's value as its user wrote it: strings without quotes.
std::string plain(const Json& value) {
  return value.is_string() ? legible(value.get_ref<const std::string&>(), 80) : shown(value);
}

Result<std::int64_t> integer_of(const std::string& field, const Json& value, std::int64_t least, std::int64_t most) {
  const std::string expected = "an integer from " + std::to_string(least) + " to " + std::to_string(most);
  std::int64_t out = 0;
  if (is_int64(value)) {
    out = value.get<std::int64_t>();
  } else if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error != std::errc() || end != text.data() + text.size()) return bad_input(field, plain(value), expected);
  } else {
    return bad_input(field, plain(value), expected);
  }
  if (out < least || out > most) return bad_input(field, std::to_string(out), expected);
  return out;
}

Result<double> real_of(const std::string& field, const Json& value) {
  double out = NAN;
  if (value.is_number()) {
    out = value.get<double>();
  } else if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error != std::errc() || end != text.data() + text.size()) out = NAN;
  }
  if (!(std::abs(out) <= std::numeric_limits<float>::max()))  // kernels take it as fp32
    return bad_input(field, plain(value), "a finite number within fp32");
  return out;
}

Result<bool> flag_of(const std::string& field, const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  const std::string text = plain(value);
  if (text == "1" || text == "true") return true;
  if (text == "0" || text == "false") return false;
  return bad_input(field, text, "true or false");
}

std::vector<std::string> field_names(const OpSpec& op) {
  std::vector<std::string> names;
  for (const auto& dim : op.dims) names.push_back(dim.name);
  names.push_back("dtype");
  for (const auto& attribute : op.attributes) names.push_back(attribute.name);
  for (const auto& tensor : op.tensors)
    if (tensor.shape.size() == 2) names.push_back(tensor.stride_symbol());
  names.push_back("allow_nondeterministic");
  return names;
}

// The fields that may stand in one group of Problem::to_json.
std::vector<std::string> group_names(const OpSpec& op, const std::string& group) {
  std::vector<std::string> names;
  if (group == "dims")
    for (const auto& dim : op.dims) names.push_back(dim.name);
  if (group == "strides")
    for (const auto& tensor : op.tensors)
      if (tensor.shape.size() == 2) names.push_back(tensor.stride_symbol());
  for (const auto& attribute : op.attributes)
    if (group == (attribute.real ? "reals" : "attributes")) names.push_back(attribute.name);
  return names;
}

const TensorSpec* strided_tensor(const OpSpec& op, const std::string& field) {
  for (const auto& tensor : op.tensors)
    if (tensor.shape.size() == 2 && tensor.stride_symbol() == field) return &tensor;
  return nullptr;
}

Status set_field(const OpSpec& op, const std::string& name, const Json& value, Problem& problem) {
  if (const auto* dim = op.dim(name)) {
    TRY_ASSIGN(problem.dims[name], integer_of(name, value, dim->min, dim->max));
  } else if (name == "dtype") {
    std::vector<std::string> allowed;
    for (const auto dtype : op.dtypes) allowed.emplace_back(to_string(dtype));
    const std::string text = plain(value);
    if (std::find(allowed.begin(), allowed.end(), text) == allowed.end()) return unknown_name("dtype", text, allowed);
    TRY_ASSIGN(problem.dtype, dtype_from_string(text));
  } else if (const auto* attribute = op.attribute(name)) {
    if (attribute->real) {
      TRY_ASSIGN(problem.reals[name], real_of(name, value));
    } else {
      const std::string text = plain(value);
      if (std::find(attribute->values.begin(), attribute->values.end(), text) == attribute->values.end())
        return unknown_name(name, text, attribute->values);
      problem.attributes[name] = text;
    }
  } else if (strided_tensor(op, name) != nullptr) {
    TRY_ASSIGN(problem.strides[name], integer_of(name, value, 1, std::int64_t{1} << 40));
  } else if (name == "allow_nondeterministic") {
    TRY_ASSIGN(problem.allow_nondeterministic, flag_of(name, value));
  } else {
    auto error = unknown_name(name, name, field_names(op));
    error.value().message = "Unknown field " + error.value().field + " for op " + op.name;
    return error;
  }
  return {};
}

Result<Symbols> dim_symbols(const OpSpec& op, const Problem& problem) {
  Symbols symbols;
  for (const auto& dim : op.dims) {
    const auto found = problem.dims.find(dim.name);
    if (found == problem.dims.end()) {
      auto error =
          bad_input(dim.name, "", "an integer from " + std::to_string(dim.min) + " to " + std::to_string(dim.max));
      error.value().message = "Missing dimension " + dim.name + " of op " + op.name;
      return error;
    }
    symbols.set(dim.name, found->second);
  }
  return symbols;
}

// Fills defaults, requires every dimension, drops strides that only repeat the row, bounds every tensor's bytes.
Result<Problem> complete(const OpSpec& op, Problem problem) {
  problem.op = op.name;
  TRY_ASSIGN(const Symbols dims, dim_symbols(op, problem));
  for (const auto& attribute : op.attributes) {
    if (attribute.real)
      problem.reals.emplace(attribute.name, attribute.default_real);
    else
      problem.attributes.emplace(attribute.name, attribute.default_value);
  }
  for (const auto& tensor : op.tensors) {
    if (tensor.shape.size() != 2) continue;
    const auto given = problem.strides.find(tensor.stride_symbol());
    if (given == problem.strides.end()) continue;
    if (!is_present(tensor, problem))
      return bad_input(given->first, std::to_string(given->second),
                       "no stride: " + tensor.name + " is absent for these attributes");
    TRY_ASSIGN(const auto columns, tensor.shape[1].eval(dims));
    if (given->second < columns)
      return bad_input(given->first, std::to_string(given->second),
                       "at least the row of " + std::to_string(columns) + " elements");
    if (given->second == columns) problem.strides.erase(given);
  }
  TRY_ASSIGN(const Symbols symbols, problem_symbols(op, problem));
  for (const auto& tensor : op.tensors) {
    if (!is_present(tensor, problem)) continue;
    TRY_ASSIGN(const auto elements, tensor_span_elements(tensor, symbols));
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(elements, size_bytes(tensor_dtype(tensor, problem)), &bytes) ||
        bytes > (std::int64_t{1} << 62))
      return bad_input(tensor.name, std::to_string(elements) + " elements", "a tensor of at most 2^62 bytes");
  }
  return problem;
}

}  // namespace

Result<Problem> make_problem(const OpSpec& op, const Json& fields) {
  if (!fields.is_object()) return bad_input("problem", shown(fields), "an object of dimensions, dtype and attributes");
  Problem problem;
  problem.dtype = op.dtypes.front();
  for (const auto& [name, value] : fields.items())
    if (name != "op" && name != "from" && name != "//") TRY(set_field(op, name, value, problem));
  return complete(op, std::move(problem));
}

Result<Problem> make_problem(const OpSpec& op, const std::vector<std::string>& words) {
  Json fields = Json::object();
  for (const auto& word : words) {
    const auto equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      return bad_input("argument", word, "name=value, for example " + op.dims.front().name + "=16");
    const std::string name = word.substr(0, equals);
    if (fields.contains(name)) return bad_input(name, word, "each field once");
    if (fields.size() >= kMaxFields) return bad_input("arguments", std::to_string(words.size()), "at most 256 fields");
    fields[name] = word.substr(equals + 1);
  }
  return make_problem(op, fields);
}

Result<Problem> problem_from_json(const OpSpec& op, const Json& json) {
  JsonReader reader(json, "problem");
  TRY_ASSIGN(const auto name, reader.string("op"));
  if (name != op.name) return bad_input("problem.op", name, op.name);
  Problem problem;
  TRY_ASSIGN(const auto dtype, reader.string("dtype"));
  TRY(set_field(op, "dtype", dtype, problem));
  for (const std::string group : {"dims", "attributes", "reals", "strides"}) {
    TRY_ASSIGN(const Json* fields, reader.object(group));
    const auto known = group_names(op, group);
    for (const auto& [field, value] : fields->items()) {
      if (std::find(known.begin(), known.end(), field) == known.end())
        return unknown_name("problem." + group, field, known);
      TRY(set_field(op, field, value, problem));
    }
  }
  TRY_ASSIGN(problem.allow_nondeterministic, reader.boolean_or("allow_nondeterministic", false));
  TRY(reader.finish());
  return complete(op, std::move(problem));
}

Json Problem::to_json() const {
  return {{"op", op},
          {"dims", dims},
          {"dtype", std::string(to_string(dtype))},
          {"attributes", attributes},
          {"reals", reals},
          {"strides", strides},
          {"allow_nondeterministic", allow_nondeterministic}};
}

std::string Problem::key(const OpSpec& spec) const {
  std::string text = op + "{";
  for (const auto& dim : spec.dims) text += dim.name + "=" + std::to_string(dims.at(dim.name)) + ",";
  text += "dtype=" + std::string(to_string(dtype));
  for (const auto& [name, value] : attributes) text += "," + name + "=" + value;
  for (const auto& [name, value] : strides) text += "," + name + "=" + std::to_string(value);
  if (allow_nondeterministic) text += ",nondeterministic=1";
  return text + "}";
}

std::string Problem::family() const {
  std::string text = op + "{dtype=" + std::string(to_string(dtype));
  for (const auto& [name, value] : attributes) text += "," + name + "=" + value;
  if (allow_nondeterministic) text += ",nondeterministic=1";
  return text + "}";
}

bool is_present(const TensorSpec& tensor, const Problem& problem) {
  for (const auto& [attribute, values] : tensor.when) {
    const auto found = problem.attributes.find(attribute);
    if (found == problem.attributes.end() || std::find(values.begin(), values.end(), found->second) == values.end())
      return false;
  }
  return true;
}

DType tensor_dtype(const TensorSpec& tensor, const Problem& problem) {
  if (tensor.dtype == "$dtype") return problem.dtype;
  return dtype_from_string(tensor.dtype).value_or(problem.dtype);  // parse_op checked the name
}

Result<Symbols> problem_symbols(const OpSpec& op, const Problem& problem) {
  TRY_ASSIGN(const Symbols dims, dim_symbols(op, problem));
  Symbols symbols = dims;
  symbols.set("dtype_bytes", size_bytes(problem.dtype));
  for (const auto& tensor : op.tensors) {
    const bool present = is_present(tensor, problem);
    symbols.set("has_" + tensor.name, present ? 1 : 0);
    std::int64_t elements = 1;
    for (const auto& extent : tensor.shape) {
      TRY_ASSIGN(const auto value, extent.eval(dims));
      if (value < 1 || __builtin_mul_overflow(elements, value, &elements))
        return bad_input(tensor.name, extent.text() + " = " + std::to_string(value),
                         "positive extents whose product fits 64 bits");
    }
    std::int64_t bytes = 0;
    if (present && __builtin_mul_overflow(elements, size_bytes(tensor_dtype(tensor, problem)), &bytes))
      return bad_input(tensor.name, std::to_string(elements) + " elements", "a tensor of at most 2^62 bytes");
    symbols.set("bytes_" + tensor.name, bytes);
    if (tensor.shape.size() == 2) {
      const auto given = problem.strides.find(tensor.stride_symbol());
      TRY_ASSIGN(const auto columns, tensor.shape[1].eval(dims));
      symbols.set(tensor.stride_symbol(), given != problem.strides.end() ? given->second : columns);
    }
  }
  return symbols;
}

Result<std::int64_t> tensor_span_elements(const TensorSpec& tensor, const Symbols& symbols) {
  TRY_ASSIGN(const auto first, tensor.shape[0].eval(symbols));
  if (tensor.shape.size() == 1) return first;
  TRY_ASSIGN(const auto columns, tensor.shape[1].eval(symbols));
  const auto* stride = symbols.find(tensor.stride_symbol());
  std::int64_t span = 0;
  if (__builtin_mul_overflow(first - 1, stride ? *stride : columns, &span) ||
      __builtin_add_overflow(span, columns, &span))
    return bad_input(tensor.name, std::to_string(first) + " rows", "a tensor whose elements fit 64 bits");
  return span;
}

}  // namespace tunerd
