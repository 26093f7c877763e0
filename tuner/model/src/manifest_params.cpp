#include <algorithm>

#include "manifest_parts.h"

namespace tunerd {
namespace {

constexpr std::size_t kMaxParams = 16;
constexpr std::size_t kMaxValues = 256;
constexpr std::size_t kMaxDerived = 64;

Result<std::vector<std::int64_t>> parse_values(const Json& json, const std::string& path) {
  if (!json.is_array() || json.empty() || json.size() > kMaxValues) {
    return bad_input(path, json.is_array() ? std::to_string(json.size()) + " values" : json.dump(),
                     "an array of 1 to " + std::to_string(kMaxValues) + " integers");
  }
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string element = path + "[" + std::to_string(i) + "]";
    const bool fits = json[i].is_number_integer() &&
                      (!json[i].is_number_unsigned() || json[i].get<std::uint64_t>() <= std::uint64_t{1} << 62);
    if (!fits) return bad_input(element, json[i].dump(), "an integer");
    const auto value = json[i].get<std::int64_t>();
    if (std::find(values.begin(), values.end(), value) != values.end()) {
      return bad_input(element, std::to_string(value), "each value once");
    }
    values.push_back(value);
  }
  return values;
}

// Depth-first over the names an expression uses; `path` holds the chain walked so far, so that a cycle can be told.
class DependencyOrder {
 public:
  DependencyOrder(const std::vector<Derived>& all, std::string field) : all_(all), field_(std::move(field)) {}

  Status visit(std::size_t index) {
    if (done_.count(index) != 0) return {};
    const auto seen = std::find(chain_.begin(), chain_.end(), index);
    if (seen != chain_.end()) {
      std::string cycle;
      for (auto it = seen; it != chain_.end(); ++it) cycle += all_[*it].name + " -> ";
      cycle += all_[index].name;
      return bad_input(field_ + "." + all_[index].name, cycle, "derived values that do not depend on themselves");
    }
    chain_.push_back(index);
    for (const std::string& name : all_[index].expr.names()) {
      const auto next =
          std::find_if(all_.begin(), all_.end(), [&](const Derived& derived) { return derived.name == name; });
      if (next != all_.end()) TRY(visit(static_cast<std::size_t>(next - all_.begin())));
    }
    chain_.pop_back();
    done_.insert(index);
    ordered_.push_back(all_[index]);
    return {};
  }

  std::vector<Derived> take() { return std::move(ordered_); }

 private:
  const std::vector<Derived>& all_;
  std::string field_;
  std::vector<std::size_t> chain_;
  std::set<std::size_t> done_;
  std::vector<Derived> ordered_;
};

}  // namespace

Status parse_params(JsonReader& reader, ManifestScope& scope, Manifest& manifest) {
  if (!reader.has("params")) return {};
  TRY_ASSIGN(const Json* params, reader.object("params"));
  const std::string field = reader.path() + ".params";
  for (const auto& [name, values] : members(*params)) {
    const std::string path = field + "." + name;
    TRY(scope.declare(name, path));
    TRY(scope.define(name, path));
    TRY_ASSIGN(std::vector<std::int64_t> allowed, parse_values(*values, path));
    manifest.params.push_back({name, std::move(allowed)});
  }
  if (manifest.params.size() > kMaxParams) {
    return bad_input(field, std::to_string(manifest.params.size()) + " parameters",
                     "at most " + std::to_string(kMaxParams));
  }
  return {};
}

Status parse_derived(JsonReader& reader, ManifestScope& scope, Manifest& manifest) {
  if (!reader.has("derived")) return {};
  TRY_ASSIGN(const Json* object, reader.object("derived"));
  const std::string field = reader.path() + ".derived";
  const auto entries = members(*object);
  if (entries.size() > kMaxDerived) {
    return bad_input(field, std::to_string(entries.size()) + " values", "at most " + std::to_string(kMaxDerived));
  }
  // Any may name any other, so all names are known before the first expression is looked at.
  for (const auto& [name, value] : entries) TRY(scope.declare(name, field + "." + name));
  std::vector<Derived> all;
  for (const auto& [name, value] : entries) {
    const std::string path = field + "." + name;
    Derived derived{name, Expr(), false};
    if (value->is_object()) {
      JsonReader inner(*value, path);
      const Json* expr = inner.any("expr");
      if (expr == nullptr) return bad_input(path + ".expr", "(missing)", "an integer expression");
      TRY_ASSIGN(derived.expr, scope.expr(*expr, path + ".expr", Stage::variant));
      TRY_ASSIGN(derived.define, inner.boolean_or("define", false));
      TRY(inner.finish());
      if (derived.define) TRY(scope.define(name, path));
    } else {
      TRY_ASSIGN(derived.expr, scope.expr(*value, path, Stage::variant));
    }
    all.push_back(std::move(derived));
  }
  DependencyOrder order(all, field);
  for (std::size_t i = 0; i < all.size(); ++i) TRY(order.visit(i));
  manifest.derived = order.take();
  return {};
}

}  // namespace tunerd
