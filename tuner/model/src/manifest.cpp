#include "model/manifest.h"

#include <algorithm>

#include "manifest_parts.h"

namespace tunerd {
namespace {

constexpr std::int64_t kMaxAlignBytes = 64 << 10;

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_entry_name(const std::string& text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (text.empty() || text.size() > 128 || !letter(text[0])) return false;
  return std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

// A file of the manifest's own folder; what it links to is checked where it is read.
Status check_source_name(const std::string& source, const std::string& path) {
  const std::filesystem::path file(source);
  const bool escapes =
      file.is_absolute() || std::any_of(file.begin(), file.end(), [](const auto& part) { return part == ".."; });
  if (source.empty() || escapes || source.find('\0') != std::string::npos) {
    return bad_input(path, source, "a file in the manifest's folder, without '..'");
  }
  return {};
}

std::vector<std::string> dim_names(const OpSpec& op) {
  std::vector<std::string> names;
  for (const DimSpec& dim : op.dims) names.push_back(dim.name);
  return names;
}

Status parse_per_dim(JsonReader& reader, const std::string& key, const OpSpec& op, const ManifestScope& scope,
                     std::map<std::string, Expr>& out) {
  if (!reader.has(key)) return {};
  TRY_ASSIGN(const Json* object, reader.object(key));
  const std::string field = reader.path() + "." + key;
  for (const auto& [name, value] : members(*object)) {
    if (op.dim(name) == nullptr) return unknown_name(field, name, dim_names(op));
    TRY_ASSIGN(Expr expr, scope.expr(*value, field + "." + name, Stage::variant));
    out[name] = std::move(expr);
  }
  return {};
}

Status parse_alignment(JsonReader& reader, const OpSpec& op, Manifest& manifest) {
  if (!reader.has("align_bytes")) return {};
  TRY_ASSIGN(const Json* object, reader.object("align_bytes"));
  const std::string field = reader.path() + ".align_bytes";
  std::vector<std::string> tensors;
  for (const TensorSpec& tensor : op.tensors) tensors.push_back(tensor.name);
  for (const auto& [name, value] : members(*object)) {
    if (!contains(tensors, name)) return unknown_name(field, name, tensors);
    if (!value->is_number_integer()) return bad_input(field + "." + name, value->dump(), "a power of two");
    const auto align_bytes = value->get<std::int64_t>();
    TRY(check_alignment(align_bytes, field + "." + name));
    manifest.align_bytes[name] = align_bytes;
  }
  return {};
}

Status parse_deterministic(JsonReader& reader, const ManifestScope& scope, Manifest& manifest) {
  const Json* value = reader.any("deterministic");
  if (value == nullptr) return {};
  const std::string field = reader.path() + ".deterministic";
  if (value->is_boolean()) {
    manifest.deterministic = Rule{Expr(value->get<bool>() ? 1 : 0), "the template is not deterministic"};
    return {};
  }
  JsonReader inner(*value, field);
  const Json* condition = inner.any("if");
  if (!value->is_object() || condition == nullptr) {
    return bad_input(field, value->dump(), "true, false, or { \"if\": expression, \"reason\": text }");
  }
  TRY_ASSIGN(manifest.deterministic.expr, scope.expr(*condition, field + ".if", Stage::variant));
  TRY_ASSIGN(manifest.deterministic.reason, inner.string("reason"));
  return inner.finish();
}

Status parse_names(JsonReader& reader, const OpSpec& op, Manifest& manifest) {
  const std::string& where = reader.path();
  TRY_ASSIGN(manifest.name, reader.string("template"));
  if (!is_identifier(manifest.name)) {
    return bad_input(where + ".template", manifest.name,
                     "at most 64 lower-case letters, digits and _, starting with a letter");
  }
  TRY_ASSIGN(manifest.op, reader.string("op"));
  if (manifest.op != op.name) return unknown_name(where + ".op", manifest.op, {op.name});
  TRY_ASSIGN(manifest.source, reader.string("source"));
  TRY(check_source_name(manifest.source, where + ".source"));
  TRY_ASSIGN(manifest.entry, reader.string("entry"));
  if (!is_entry_name(manifest.entry)) {
    return bad_input(where + ".entry", manifest.entry, "the C name of an extern \"C\" kernel");
  }
  return {};
}

}  // namespace

std::vector<std::pair<std::string, const Json*>> members(const Json& object) {
  std::vector<std::pair<std::string, const Json*>> found;
  for (auto it = object.begin(); it != object.end(); ++it) {
    if (it.key() != "//") found.emplace_back(it.key(), &it.value());
  }
  return found;
}

Status check_alignment(std::int64_t align_bytes, const std::string& path) {
  if (align_bytes >= 1 && align_bytes <= kMaxAlignBytes && (align_bytes & (align_bytes - 1)) == 0) return {};
  return bad_input(path, std::to_string(align_bytes), "a power of two from 1 to 65536");
}

bool Manifest::supports_arch(const std::string& arch) const {
  if (!archs.empty()) return contains(archs, arch);
  const Result<int> cc = arch_cc(arch);
  return cc && *cc >= min_cc;
}

bool Manifest::supports(const Problem& problem) const {
  if (problem.op != op) return false;
  if (!dtypes.empty() && std::find(dtypes.begin(), dtypes.end(), problem.dtype) == dtypes.end()) return false;
  return std::all_of(attributes.begin(), attributes.end(), [&](const auto& supported) {
    const auto value = problem.attributes.find(supported.first);
    return value != problem.attributes.end() && contains(supported.second, value->second);
  });
}

Result<Manifest> parse_manifest(const Json& document, const OpSpec& op, const std::string& where) {
  JsonReader reader(document, where);
  Manifest manifest;
  TRY(parse_names(reader, op, manifest));
  TRY(parse_support(reader, op, manifest));
  ManifestScope scope(op);
  TRY(parse_params(reader, scope, manifest));
  TRY(parse_derived(reader, scope, manifest));
  TRY_ASSIGN(manifest.constraints, scope.rules(reader.any("constraints"), where + ".constraints", Stage::variant));
  TRY_ASSIGN(manifest.validity, scope.rules(reader.any("validity"), where + ".validity", Stage::sized));
  TRY_ASSIGN(manifest.search, scope.rules(reader.any("search"), where + ".search", Stage::sized));
  TRY(parse_arguments(reader, op, scope, manifest));
  TRY(parse_launch(reader, scope, manifest));
  TRY(parse_alignment(reader, op, manifest));
  TRY(parse_deterministic(reader, scope, manifest));
  TRY(parse_per_dim(reader, "tile", op, scope, manifest.tile));
  TRY(parse_per_dim(reader, "granularity", op, scope, manifest.granularity));
  TRY(parse_cost(reader, scope, manifest));
  TRY_ASSIGN(manifest.fallback, reader.boolean_or("fallback", false));
  TRY(reader.finish());
  if (manifest.fallback && !manifest.validity.empty()) {
    return bad_input(where + ".validity", manifest.validity.front().reason,
                     "no rule in a fallback, which must serve every shape");
  }
  return manifest;
}

}  // namespace tunerd
