#include <algorithm>

#include "manifest_parts.h"

namespace tunerd {
namespace {

Status parse_extent(JsonReader& reader, const std::string& key, const ManifestScope& scope, Stage stage,
                    std::array<Expr, 3>& out) {
  out = {Expr(1), Expr(1), Expr(1)};
  if (!reader.has(key)) return {};
  TRY_ASSIGN(const Json* array, reader.array(key));
  const std::string field = reader.path() + "." + key;
  if (array->empty() || array->size() > 3) {
    return bad_input(field, std::to_string(array->size()) + " values", "1 to 3: x, y, z");
  }
  for (std::size_t i = 0; i < array->size(); ++i) {
    TRY_ASSIGN(out[i], scope.expr((*array)[i], field + "[" + std::to_string(i) + "]", stage));
  }
  return {};
}

Result<Expr> optional_expr(JsonReader& reader, const std::string& key, const ManifestScope& scope, Stage stage,
                           std::int64_t fallback) {
  const Json* value = reader.any(key);
  if (value == nullptr) return Expr(fallback);
  return scope.expr(*value, reader.path() + "." + key, stage);
}

Status parse_attributes(JsonReader& reader, const OpSpec& op, Manifest& manifest) {
  if (!reader.has("attributes")) return {};
  TRY_ASSIGN(const Json* object, reader.object("attributes"));
  const std::string field = reader.path() + ".attributes";
  std::vector<std::string> enumerated;
  for (const AttributeSpec& attribute : op.attributes) {
    if (!attribute.real) enumerated.push_back(attribute.name);
  }
  JsonReader inner(*object, field);
  for (const auto& [name, value] : members(*object)) {
    const AttributeSpec* attribute = op.attribute(name);
    if (attribute == nullptr || attribute->real) return unknown_name(field, name, enumerated);
    TRY_ASSIGN(std::vector<std::string> supported, inner.strings_or(name, {}));
    for (const std::string& text : supported) {
      if (std::find(attribute->values.begin(), attribute->values.end(), text) == attribute->values.end()) {
        return unknown_name(field + "." + name, text, attribute->values);
      }
    }
    if (supported.empty()) return bad_input(field + "." + name, "[]", "at least one value");
    manifest.attributes[name] = std::move(supported);
  }
  return {};
}

Status parse_arch(JsonReader& reader, Manifest& manifest) {
  if (!reader.has("arch")) return {};
  TRY_ASSIGN(const Json* object, reader.object("arch"));
  const std::string field = reader.path() + ".arch";
  JsonReader inner(*object, field);
  TRY_ASSIGN(const std::string min, inner.string_or("min", ""));
  TRY_ASSIGN(manifest.archs, inner.strings_or("only", {}));
  TRY(inner.finish());
  if (min.empty() == manifest.archs.empty()) {
    return bad_input(field, object->dump(), "either { \"min\": \"sm_80\" } or { \"only\": [\"sm_90a\"] }");
  }
  for (const std::string& arch : manifest.archs) {
    if (auto cc = arch_cc(arch); !cc) return bad_input(field + ".only", arch, "an architecture such as sm_90a");
  }
  if (!min.empty()) {
    const Result<int> cc = arch_cc(min);
    if (!cc) return bad_input(field + ".min", min, "an architecture such as sm_80");
    manifest.min_cc = *cc;
  }
  return {};
}

}  // namespace

Status parse_support(JsonReader& reader, const OpSpec& op, Manifest& manifest) {
  TRY(parse_arch(reader, manifest));
  TRY_ASSIGN(const std::vector<std::string> dtypes, reader.strings_or("dtypes", {}));
  std::vector<std::string> known;
  for (DType dtype : op.dtypes) known.emplace_back(to_string(dtype));
  for (const std::string& text : dtypes) {
    if (std::find(known.begin(), known.end(), text) == known.end()) {
      return unknown_name(reader.path() + ".dtypes", text, known);
    }
    TRY_ASSIGN(DType dtype, dtype_from_string(text, reader.path() + ".dtypes"));
    manifest.dtypes.push_back(dtype);
  }
  return parse_attributes(reader, op, manifest);
}

Status parse_launch(JsonReader& reader, const ManifestScope& scope, Manifest& manifest) {
  TRY_ASSIGN(const Json* object, reader.object("launch"));
  JsonReader inner(*object, reader.path() + ".launch");
  for (const char* key : {"grid", "block"}) {
    if (!inner.has(key)) return bad_input(inner.path() + "." + key, "(missing)", "an array of 1 to 3 expressions");
  }
  TRY(parse_extent(inner, "grid", scope, Stage::sized, manifest.grid));
  TRY(parse_extent(inner, "block", scope, Stage::variant, manifest.block));
  TRY(parse_extent(inner, "cluster", scope, Stage::variant, manifest.cluster));
  TRY_ASSIGN(manifest.dynamic_smem_bytes, optional_expr(inner, "dynamic_smem_bytes", scope, Stage::variant, 0));
  TRY_ASSIGN(manifest.pdl, inner.boolean_or("pdl", false));
  TRY_ASSIGN(manifest.cooperative, inner.boolean_or("cooperative", false));
  TRY(inner.finish());
  const auto& block = manifest.block;
  TRY_ASSIGN(manifest.threads,
             Expr::parse("(" + block[0].text() + ")*(" + block[1].text() + ")*(" + block[2].text() + ")"));
  return {};
}

Status parse_cost(JsonReader& reader, const ManifestScope& scope, Manifest& manifest) {
  manifest.cost.efficiency_permille = Expr(700);
  if (!reader.has("cost")) return {};
  TRY_ASSIGN(const Json* object, reader.object("cost"));
  JsonReader inner(*object, reader.path() + ".cost");
  CostSpec& cost = manifest.cost;
  TRY_ASSIGN(cost.tiles, optional_expr(inner, "tiles", scope, Stage::cost, 0));
  TRY_ASSIGN(cost.tile_flops, optional_expr(inner, "tile_flops", scope, Stage::cost, 0));
  TRY_ASSIGN(cost.tile_bytes, optional_expr(inner, "tile_bytes", scope, Stage::cost, 0));
  TRY_ASSIGN(cost.dram_bytes, optional_expr(inner, "dram_bytes", scope, Stage::cost, 0));
  TRY_ASSIGN(cost.serial_steps, optional_expr(inner, "serial_steps", scope, Stage::cost, 0));
  TRY_ASSIGN(cost.step_latency_ns, optional_expr(inner, "step_latency_ns", scope, Stage::cost, 0));
  TRY_ASSIGN(cost.efficiency_permille, optional_expr(inner, "efficiency_permille", scope, Stage::cost, 700));
  return inner.finish();
}

}  // namespace tunerd
