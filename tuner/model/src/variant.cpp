#include <algorithm>
#include <charconv>

#include "manifest_scope.h"
#include "model/manifest.h"
#include "model/variant_resolver.h"

namespace tunerd {
namespace {

constexpr std::size_t kMaxText = 4096;

Unexpected malformed(std::string_view text) {
  constexpr std::size_t kShown = 200;
  return bad_input("variant", std::string(text.substr(0, kShown)), "template{param=integer,…}, each parameter once");
}

}  // namespace

std::string Variant::text() const {
  std::string text = template_name + "{";
  const char* separator = "";
  for (const auto& [name, value] : params) {
    text.append(separator).append(name).append("=").append(std::to_string(value));
    separator = ",";
  }
  return text + "}";
}

Result<Variant> Variant::parse(std::string_view text) {
  const std::size_t open = text.find('{');
  if (text.size() > kMaxText || open == std::string_view::npos || text.back() != '}') return malformed(text);
  Variant variant;
  variant.template_name = text.substr(0, open);
  if (!is_identifier(variant.template_name)) return malformed(text);
  std::string_view rest = text.substr(open + 1, text.size() - open - 2);
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos || !is_identifier(item.substr(0, equals))) return malformed(text);
    const std::string_view digits = item.substr(equals + 1);
    std::int64_t value = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (parsed.ec != std::errc{} || parsed.ptr != digits.data() + digits.size()) return malformed(text);
    if (!variant.params.emplace(item.substr(0, equals), value).second) return malformed(text);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
    if (rest.empty()) return malformed(text);
  }
  return variant;
}

Status check_variant(const Manifest& manifest, const OpSpec& op, const Variant& variant, const Problem& problem,
                     const DeviceSpec& device) {
  TRY_ASSIGN(const VariantResolver resolver, VariantResolver::make(manifest, op, problem, device));
  TRY_ASSIGN(const std::vector<std::int64_t> values, resolver.values_of(variant));
  ResolvedVariant resolved;
  return resolver.resolve(values, resolved);
}

Result<Symbols> variant_symbols(const Manifest& manifest, const OpSpec& op, const Variant& variant,
                                const Problem& problem, const DeviceSpec& device) {
  TRY_ASSIGN(const VariantResolver resolver, VariantResolver::make(manifest, op, problem, device));
  TRY_ASSIGN(const std::vector<std::int64_t> values, resolver.values_of(variant));
  ResolvedVariant resolved;
  TRY(resolver.resolve(values, resolved));
  Symbols symbols = resolver.problem_symbols();
  symbols.merge(resolved.symbols);
  return symbols;
}

}  // namespace tunerd
