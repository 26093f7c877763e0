#include "model/op.h"

#include <algorithm>
#include <set>

#include "expr_ops.h"
#include "json_text.h"

namespace tunerd {
namespace {

Status require_name(const std::string& path, const std::string& name) {
  if (!ExprOps::is_name(name) || ExprOps::find(name) != nullptr)
    return bad_input(path, name, "a name of [a-z_][a-z0-9_]* that is no operator word");
  return {};
}

Result<DimSpec> parse_dim(const Json& json, const std::string& path) {
  JsonReader reader(json, path);
  DimSpec dim;
  TRY_ASSIGN(dim.name, reader.string("name"));
  TRY_ASSIGN(dim.min, reader.integer_or("min", dim.min));
  TRY_ASSIGN(dim.max, reader.integer_or("max", dim.max));
  TRY(reader.finish());
  TRY(require_name(path + ".name", dim.name));
  if (dim.min < 1) return bad_input(path + ".min", std::to_string(dim.min), "at least 1");
  if (dim.max < dim.min || dim.max > (std::int64_t{1} << 31))
    return bad_input(path + ".max", std::to_string(dim.max), "from min to 2147483648");
  return dim;
}

Result<AttributeSpec> parse_attribute(const std::string& name, const Json& json, const std::string& path) {
  JsonReader reader(json, path);
  AttributeSpec attribute;
  attribute.name = name;
  TRY(require_name(path, name));
  TRY_ASSIGN(attribute.real, reader.boolean_or("real", false));
  if (attribute.real) {
    TRY_ASSIGN(attribute.default_real, reader.number("default"));
  } else {
    TRY_ASSIGN(attribute.values, reader.strings_or("values", {}));
    if (attribute.values.empty()) {
      reader.any("default");
      TRY(reader.finish());  // a misspelt "real" or "values" is the better explanation
      return bad_input(path + ".values", "[]", "at least one value");
    }
    std::set<std::string> seen;
    for (const auto& value : attribute.values) {
      TRY(require_name(path + ".values", value));
      if (!seen.insert(value).second) return bad_input(path + ".values", value, "each value once");
    }
    TRY_ASSIGN(attribute.default_value, reader.string_or("default", attribute.values.front()));
    if (std::find(attribute.values.begin(), attribute.values.end(), attribute.default_value) == attribute.values.end())
      return unknown_name(path + ".default", attribute.default_value, attribute.values);
  }
  TRY(reader.finish());
  return attribute;
}

using When = std::map<std::string, std::vector<std::string>>;

Result<When> parse_when(const Json* json, const std::string& path, const OpSpec& op) {
  When when;
  if (json == nullptr) return when;
  if (!json->is_object()) return bad_input(path, shown(*json), "an object of attribute: [values]");
  std::vector<std::string> names;
  for (const auto& attribute : op.attributes)
    if (!attribute.real) names.push_back(attribute.name);
  JsonReader reader(*json, path);
  for (const auto& [name, unused] : json->items()) {
    if (name == "//") continue;
    const auto* attribute = op.attribute(name);
    if (attribute == nullptr || attribute->real) return unknown_name(path, name, names);
    TRY_ASSIGN(auto values, reader.strings_or(name, {}));
    if (values.empty()) return bad_input(path + "." + name, "[]", "at least one value");
    for (const auto& value : values)
      if (std::find(attribute->values.begin(), attribute->values.end(), value) == attribute->values.end())
        return unknown_name(path + "." + name, value, attribute->values);
    when[name] = std::move(values);
  }
  return when;
}

Result<TensorSpec> parse_tensor(const Json& json, const std::string& path, const OpSpec& op) {
  JsonReader reader(json, path);
  TensorSpec tensor;
  TRY_ASSIGN(tensor.name, reader.string("name"));
  TRY(require_name(path + ".name", tensor.name));
  TRY_ASSIGN(const auto role, reader.string("role"));
  if (role != "input" && role != "output") return unknown_name(path + ".role", role, {"input", "output"});
  tensor.role = role == "input" ? Role::input : Role::output;
  TRY_ASSIGN(tensor.dtype, reader.string_or("dtype", "$dtype"));
  if (tensor.dtype != "$dtype") TRY(dtype_from_string(tensor.dtype, path + ".dtype"));
  TRY_ASSIGN(tensor.distribution, reader.string_or("distribution", tensor.distribution));
  const std::vector<std::string> distributions{"gaussian", "uniform01", "positive"};
  if (std::find(distributions.begin(), distributions.end(), tensor.distribution) == distributions.end())
    return unknown_name(path + ".distribution", tensor.distribution, distributions);
  TRY_ASSIGN(const Json* shape, reader.array("shape"));
  if (shape->empty() || shape->size() > 2) return bad_input(path + ".shape", shown(*shape), "one or two dimensions");
  std::vector<std::string> dims;
  for (const auto& dim : op.dims) dims.push_back(dim.name);
  for (std::size_t i = 0; i < shape->size(); ++i) {
    const std::string where = path + ".shape[" + std::to_string(i) + "]";
    TRY_ASSIGN(auto expr, Expr::from_manifest((*shape)[i], where));
    for (const auto& name : expr.names())
      if (op.dim(name) == nullptr) return unknown_name(where, name, dims);
    tensor.shape.push_back(std::move(expr));
  }
  TRY_ASSIGN(tensor.when, parse_when(reader.any("when"), path + ".when", op));
  TRY(reader.finish());
  return tensor;
}

// The cost expressions may name dimensions, has_<tensor>, bytes_<tensor> and dtype_bytes.
Result<Expr> parse_cost(JsonReader& reader, const std::string& key, const OpSpec& op) {
  const std::string path = reader.path() + "." + key;
  const Json* json = reader.any(key);
  if (json == nullptr)
    return bad_input(path, "", "an expression over dimensions, has_<tensor>, bytes_<tensor>, dtype_bytes");
  TRY_ASSIGN(auto expr, Expr::from_manifest(*json, path));
  std::vector<std::string> known{"dtype_bytes"};
  for (const auto& dim : op.dims) known.push_back(dim.name);
  for (const auto& tensor : op.tensors) {
    known.push_back("has_" + tensor.name);
    known.push_back("bytes_" + tensor.name);
  }
  for (const auto& name : expr.names())
    if (std::find(known.begin(), known.end(), name) == known.end()) return unknown_name(path, name, known);
  return expr;
}

Status parse_tolerance(const Json* json, const std::string& path, OpSpec& op) {
  if (json == nullptr) return {};
  JsonReader reader(*json, path);
  TRY_ASSIGN(op.tolerance.c, reader.number_or("c", op.tolerance.c));
  if (!(op.tolerance.c > 0 && op.tolerance.c <= 64))
    return bad_input(path + ".c", std::to_string(op.tolerance.c), "a number above 0, at most 64");
  TRY_ASSIGN(op.tolerance.exact, reader.boolean_or("exact", false));
  TRY_ASSIGN(op.tolerance.exact_when, parse_when(reader.any("exact_when"), path + ".exact_when", op));
  return reader.finish();
}

Status require_unique_names(const OpSpec& op, const std::string& where) {
  // What requests, shape files and every expression's scope already name.
  std::set<std::string> seen{"dtype",
                             "op",
                             "from",
                             "allow_nondeterministic",
                             "dtype_bytes",
                             "sm_count",
                             "cc",
                             "l2_bytes",
                             "smem_per_block_bytes",
                             "smem_per_sm_bytes",
                             "registers_per_sm",
                             "threads_per_sm"};
  const auto add = [&](const std::string& name) -> Status {
    if (!seen.insert(name).second)
      return bad_input(where, name,
                       "a name used once among dimensions, attributes, tensors, what they imply (ld_, has_, bytes_) "
                       "and the device's symbols");
    return {};
  };
  for (const auto& dim : op.dims) TRY(add(dim.name));
  for (const auto& attribute : op.attributes) TRY(add(attribute.name));
  for (const auto& tensor : op.tensors)
    for (const char* prefix : {"", "ld_", "has_", "bytes_"}) TRY(add(prefix + tensor.name));
  return {};
}

}  // namespace

const DimSpec* OpSpec::dim(std::string_view wanted) const {
  for (const auto& dim : dims)
    if (dim.name == wanted) return &dim;
  return nullptr;
}

const AttributeSpec* OpSpec::attribute(std::string_view wanted) const {
  for (const auto& attribute : attributes)
    if (attribute.name == wanted) return &attribute;
  return nullptr;
}

const TensorSpec* OpSpec::tensor(std::string_view wanted) const {
  for (const auto& tensor : tensors)
    if (tensor.name == wanted) return &tensor;
  return nullptr;
}

Result<OpSpec> parse_op(const Json& document, const std::string& where) {
  JsonReader reader(document, where);
  OpSpec op;
  TRY_ASSIGN(op.name, reader.string("op"));
  TRY(require_name(where + ".op", op.name));
  TRY_ASSIGN(op.summary, reader.string_or("summary", ""));
  TRY_ASSIGN(const Json* dims, reader.array("dims"));
  if (dims->empty() || dims->size() > 8)
    return bad_input(where + ".dims", std::to_string(dims->size()) + " dimensions", "1 to 8 dimensions");
  for (std::size_t i = 0; i < dims->size(); ++i) {
    TRY_ASSIGN(auto dim, parse_dim((*dims)[i], where + ".dims[" + std::to_string(i) + "]"));
    op.dims.push_back(std::move(dim));
  }
  TRY_ASSIGN(const auto dtypes, reader.strings_or("dtypes", {}));
  if (dtypes.empty()) return bad_input(where + ".dtypes", "[]", "at least one dtype");
  for (const auto& name : dtypes) {
    TRY_ASSIGN(const auto dtype, dtype_from_string(name, where + ".dtypes"));
    if (std::find(op.dtypes.begin(), op.dtypes.end(), dtype) != op.dtypes.end())
      return bad_input(where + ".dtypes", name, "each dtype once");
    op.dtypes.push_back(dtype);
  }
  if (reader.has("attributes")) {
    TRY_ASSIGN(const Json* attributes, reader.object("attributes"));
    if (attributes->size() > 16)
      return bad_input(where + ".attributes", std::to_string(attributes->size()) + " attributes", "at most 16");
    for (const auto& [name, json] : attributes->items()) {
      if (name == "//") continue;
      TRY_ASSIGN(auto attribute, parse_attribute(name, json, where + ".attributes." + name));
      op.attributes.push_back(std::move(attribute));
    }
  }
  TRY_ASSIGN(const Json* tensors, reader.array("tensors"));
  if (tensors->empty() || tensors->size() > 16)
    return bad_input(where + ".tensors", std::to_string(tensors->size()) + " tensors", "1 to 16 tensors");
  for (std::size_t i = 0; i < tensors->size(); ++i) {
    TRY_ASSIGN(auto tensor, parse_tensor((*tensors)[i], where + ".tensors[" + std::to_string(i) + "]", op));
    op.tensors.push_back(std::move(tensor));
  }
  if (std::none_of(op.tensors.begin(), op.tensors.end(), [](const auto& t) { return t.role == Role::output; }))
    return bad_input(where + ".tensors", "inputs only", "at least one tensor with role output");
  TRY_ASSIGN(op.flops, parse_cost(reader, "flops", op));
  TRY_ASSIGN(op.fused_bytes, parse_cost(reader, "fused_bytes", op));
  TRY_ASSIGN(op.compute, reader.string_or("compute", "tensor"));
  if (op.compute != "tensor" && op.compute != "fp32")
    return unknown_name(where + ".compute", op.compute, {"tensor", "fp32"});
  TRY(parse_tolerance(reader.any("tolerance"), where + ".tolerance", op));
  TRY_ASSIGN(const Json* reference, reader.object("reference"));
  JsonReader reference_reader(*reference, where + ".reference");
  TRY_ASSIGN(op.reference.source, reference_reader.string("source"));
  TRY_ASSIGN(op.reference.entry, reference_reader.string("entry"));
  TRY(reference_reader.finish());
  TRY(reader.finish());
  TRY(require_unique_names(op, where));
  op.document = document;
  return op;
}

}  // namespace tunerd
