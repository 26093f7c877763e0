#include "problem_key.h"

#include <algorithm>
#include <functional>

namespace tunerd::client {
namespace {

constexpr std::size_t kMaxFields = 64;

std::size_t hash_dim(std::string_view name, std::int64_t value) {
  const std::size_t h = std::hash<std::string_view>{}(name) ^ (static_cast<std::uint64_t>(value) * 0x9E3779B97F4A7C15u);
  return h * 0xBF58476D1CE4E5B9u;
}
std::size_t hash_attribute(std::string_view name, std::string_view text) {
  const std::size_t h = std::hash<std::string_view>{}(name)*31 + std::hash<std::string_view>{}(text);
  return h * 0x94D049BB133111EBu;
}

template <class Fields, class Value>
bool holds(const Fields& fields, std::string_view name, const Value& value) {
  return std::any_of(fields.begin(), fields.end(),
                     [&](const auto& field) { return field.first == name && field.second == value; });
}

}  // namespace

Json ProblemKey::fields() const {
  Json out = Json::object();
  for (const auto& [name, value] : dims) out[name] = value;
  for (const auto& [name, text] : attributes) out[name] = text;
  return out;
}

Status check(const ProblemView& problem) {
  if (problem.op.empty()) return bad_input("op", "nothing", "the name of an op");
  if (problem.dim_count + problem.attribute_count > kMaxFields || problem.dim_count > kMaxFields)
    return bad_input("dim_count + attribute_count", std::to_string(problem.dim_count + problem.attribute_count),
                     "at most " + std::to_string(kMaxFields));
  if (problem.dim_count > 0 && problem.dims == nullptr) return bad_input("dims", "null", "an array of dim_count dims");
  if (problem.attribute_count > 0 && problem.attributes == nullptr)
    return bad_input("attributes", "null", "an array of attribute_count attributes");
  std::vector<std::string_view> names;
  const auto add = [&](const char* name, const char* what) -> Status {
    if (name == nullptr || *name == '\0') return bad_input(what, "null or empty", "a name");
    if (std::find(names.begin(), names.end(), name) != names.end())
      return bad_input(name, "given twice", "each dim and attribute once");
    names.emplace_back(name);
    return {};
  };
  for (std::size_t i = 0; i < problem.dim_count; ++i) TRY(add(problem.dims[i].name, "dim's name"));
  for (std::size_t i = 0; i < problem.attribute_count; ++i) {
    TRY(add(problem.attributes[i].name, "attribute's name"));
    if (problem.attributes[i].text == nullptr) return bad_input(problem.attributes[i].name, "null", "text");
  }
  return {};
}

ProblemKey to_key(const ProblemView& problem) {
  ProblemKey key;
  key.op = problem.op;
  for (std::size_t i = 0; i < problem.dim_count; ++i)
    key.dims.emplace_back(problem.dims[i].name, problem.dims[i].value);
  for (std::size_t i = 0; i < problem.attribute_count; ++i)
    key.attributes.emplace_back(problem.attributes[i].name, problem.attributes[i].text);
  return key;
}

std::size_t ProblemHash::operator()(const ProblemView& problem) const {
  std::size_t hash = std::hash<std::string_view>{}(problem.op);
  for (std::size_t i = 0; i < problem.dim_count; ++i) hash += hash_dim(problem.dims[i].name, problem.dims[i].value);
  for (std::size_t i = 0; i < problem.attribute_count; ++i)
    hash += hash_attribute(problem.attributes[i].name, problem.attributes[i].text);
  return hash;
}

std::size_t ProblemHash::operator()(const ProblemKey& problem) const {
  std::size_t hash = std::hash<std::string_view>{}(problem.op);
  for (const auto& [name, value] : problem.dims) hash += hash_dim(name, value);
  for (const auto& [name, text] : problem.attributes) hash += hash_attribute(name, text);
  return hash;
}

bool ProblemEqual::operator()(const ProblemKey& a, const ProblemKey& b) const {
  if (a.op != b.op || a.dims.size() != b.dims.size() || a.attributes.size() != b.attributes.size()) return false;
  return std::all_of(a.dims.begin(), a.dims.end(),
                     [&](const auto& dim) { return holds(b.dims, dim.first, dim.second); }) &&
         std::all_of(a.attributes.begin(), a.attributes.end(),
                     [&](const auto& field) { return holds(b.attributes, field.first, field.second); });
}

bool ProblemEqual::operator()(const ProblemView& a, const ProblemKey& b) const {
  if (a.op != b.op || a.dim_count != b.dims.size() || a.attribute_count != b.attributes.size()) return false;
  for (std::size_t i = 0; i < a.dim_count; ++i)
    if (!holds(b.dims, a.dims[i].name, a.dims[i].value)) return false;
  for (std::size_t i = 0; i < a.attribute_count; ++i)
    if (!holds(b.attributes, a.attributes[i].name, std::string_view(a.attributes[i].text))) return false;
  return true;
}

}  // namespace tunerd::client
