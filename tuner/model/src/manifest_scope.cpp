#include "manifest_scope.h"

#include <algorithm>

namespace tunerd {
namespace {

constexpr std::size_t kMaxRules = 64;  // as many as a recipe carries

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool is_identifier(std::string_view text) {
  if (text.empty() || text.size() > 64 || text[0] < 'a' || text[0] > 'z') return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

std::string macro_name(std::string_view text) {
  std::string name(text);
  for (char& c : name) {
    if (c >= 'a' && c <= 'z') {
      c = static_cast<char>(c - 'a' + 'A');
    } else if (!((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))) {
      c = '_';
    }
  }
  return name;
}

ManifestScope::ManifestScope(const OpSpec& op) {
  const Symbols device = DeviceSpec{}.symbols();
  for (const auto& entry : device.entries()) variant_.push_back(entry.first);
  variant_.emplace_back("dtype_bytes");
  for (const DimSpec& dim : op.dims) sized_.push_back(dim.name);
  for (const TensorSpec& tensor : op.tensors) {
    variant_.push_back("has_" + tensor.name);
    if (tensor.shape.size() == 2) sized_.push_back(tensor.stride_symbol());
    cost_.push_back("bytes_" + tensor.name);
    macros_.insert(macro_name("has_" + tensor.name));
  }
  for (DType dtype : op.dtypes) macros_.insert(macro_name("dtype_" + std::string(to_string(dtype))));
  for (const AttributeSpec& attribute : op.attributes) {
    for (const std::string& value : attribute.values) macros_.insert(macro_name(attribute.name + "_" + value));
  }
}

Status ManifestScope::declare(const std::string& name, const std::string& path) {
  if (!is_identifier(name)) {
    return bad_input(path, name, "a name of at most 64 lower-case letters, digits and _, starting with a letter");
  }
  if (contains(variant_, name) || contains(sized_, name) || contains(cost_, name)) {
    return bad_input(path, name, "a name that no parameter, derived value, dimension or device symbol has yet");
  }
  variant_.push_back(name);
  return {};
}

Status ManifestScope::define(const std::string& name, const std::string& path) {
  const std::string macro = macro_name(name);
  if (macros_.insert(macro).second) return {};
  return bad_input(path, name, "a name whose macro " + macro + " is not defined already");
}

Status ManifestScope::check(const Expr& expr, const std::string& path, Stage stage) const {
  for (const std::string& name : expr.names()) {
    if (contains(variant_, name)) continue;
    if (contains(sized_, name)) {
      if (stage != Stage::variant) continue;
      return bad_input(path, name, "no dimension or stride here: it must be constant for a compiled variant");
    }
    if (contains(cost_, name)) {
      if (stage == Stage::cost) continue;
      return bad_input(path, name, "no bytes_<tensor> outside of cost");
    }
    std::vector<std::string> known = variant_;
    if (stage != Stage::variant) known.insert(known.end(), sized_.begin(), sized_.end());
    if (stage == Stage::cost) known.insert(known.end(), cost_.begin(), cost_.end());
    std::sort(known.begin(), known.end());
    return unknown_name(path, name, known);
  }
  return {};
}

Result<Expr> ManifestScope::expr(const Json& value, const std::string& path, Stage stage) const {
  TRY_ASSIGN(Expr parsed, Expr::from_manifest(value, path));
  TRY(check(parsed, path, stage));
  return parsed;
}

Result<std::vector<Rule>> ManifestScope::rules(const Json* array, const std::string& path, Stage stage) const {
  TRY_ASSIGN(std::vector<Rule> rules, rules_from_json(array, path));
  if (rules.size() > kMaxRules) {
    return bad_input(path, std::to_string(rules.size()) + " rules", "at most " + std::to_string(kMaxRules));
  }
  for (std::size_t i = 0; i < rules.size(); ++i) {
    TRY(check(rules[i].expr, path + "[" + std::to_string(i) + "].if", stage));
  }
  return rules;
}

}  // namespace tunerd
