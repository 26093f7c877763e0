#include <algorithm>

#include "manifest_scope.h"
#include "model/manifest.h"
#include "model/variant_resolver.h"

namespace tunerd {
namespace {

std::vector<std::string> defines_of(const Manifest& manifest, const OpSpec& op, const Symbols& values,
                                    const Problem& problem) {
  std::vector<std::string> defines;
  const auto define = [&](const std::string& name, std::int64_t value) {
    defines.push_back("-D" + macro_name(name) + "=" + std::to_string(value));
  };
  for (const Param& param : manifest.params) define(param.name, *values.find(param.name));
  for (const Derived& derived : manifest.derived) {
    if (derived.define) define(derived.name, *values.find(derived.name));
  }
  define("dtype_" + std::string(to_string(problem.dtype)), 1);
  for (const auto& [name, value] : problem.attributes) define(name + "_" + value, 1);
  for (const TensorSpec& tensor : op.tensors) define("has_" + tensor.name, is_present(tensor, problem) ? 1 : 0);
  std::sort(defines.begin(), defines.end());
  defines.erase(std::unique(defines.begin(), defines.end()), defines.end());
  return defines;
}

std::int64_t swizzle_bytes(const std::string& swizzle) {
  if (swizzle == "32B") return 32;
  if (swizzle == "64B") return 64;
  return swizzle == "128B" ? 128 : 256;  // unswizzled: only the 256 elements of a box dimension bound it
}

// The limits that cuTensorMapEncodeTiled would only report at the first launch, in the client.
Status check_box(const TensorMap& map, const std::string& field) {
  constexpr std::int64_t kMaxBox = 256;
  for (const std::int64_t extent : map.box) {
    if (extent < 1 || extent > kMaxBox) return bad_input(field, std::to_string(extent), "1 to 256 elements");
  }
  const std::int64_t inner_bytes = map.box[0] * size_bytes(map.dtype);
  if (inner_bytes % 16 != 0) {
    return bad_input(field, std::to_string(inner_bytes) + " bytes", "an innermost box of a multiple of 16 bytes");
  }
  if (map.swizzle != "none" && inner_bytes > swizzle_bytes(map.swizzle)) {
    return bad_input(field, std::to_string(inner_bytes) + " bytes",
                     "an innermost box of at most the swizzle's " + map.swizzle);
  }
  return {};
}

Result<TensorMap> bind_map(const TensorMapSpec& spec, DType dtype, const Symbols& bound, const std::string& field) {
  TensorMap map;
  map.dtype = dtype;
  for (const Expr& expr : spec.dims) map.dims.push_back(expr.bind(bound));
  for (const Expr& expr : spec.strides_bytes) map.strides_bytes.push_back(expr.bind(bound));
  for (const Expr& expr : spec.box) {
    TRY_ASSIGN(const std::int64_t extent, expr.eval(bound));
    map.box.push_back(extent);
  }
  map.swizzle = spec.swizzle;
  map.l2_promotion = spec.l2_promotion;
  if (!spec.swizzle_by_inner_bytes.empty() && map.box[0] > 0 && map.box[0] <= 256) {
    const std::int64_t inner_bytes = map.box[0] * size_bytes(dtype);
    const auto choice = spec.swizzle_by_inner_bytes.find(inner_bytes);
    if (choice == spec.swizzle_by_inner_bytes.end()) {
      std::string known;
      for (const auto& entry : spec.swizzle_by_inner_bytes) {
        known.append(known.empty() ? "one of " : ", ").append(std::to_string(entry.first));
      }
      return bad_input(field + ".swizzle_by_inner_bytes", std::to_string(inner_bytes), known);
    }
    map.swizzle = choice->second;
  }
  TRY(check_box(map, field + ".box"));
  return map;
}

Result<Argument> bind_argument(const ArgumentSpec& spec, const OpSpec& op, const Problem& problem, const Symbols& bound,
                               const std::string& field) {
  Argument argument;
  argument.kind = spec.kind;
  argument.name = spec.name;
  switch (spec.kind) {
    case Argument::Kind::tensor:
      break;
    case Argument::Kind::scalar:
      argument.type = spec.type;
      argument.expr = spec.expr.bind(bound);
      argument.real = spec.real;
      if (const AttributeSpec* real = op.attribute(spec.real)) argument.real_default = real->default_real;
      if (const auto asked = problem.reals.find(spec.real); asked != problem.reals.end())
        argument.real_default = asked->second;
      break;
    case Argument::Kind::tensor_map: {
      const TensorSpec* tensor = op.tensor(spec.name);
      if (tensor == nullptr) return bad_input(field + ".tensor_map", spec.name, "a tensor of " + op.name);
      // Nothing can be mapped of an absent tensor: it is passed as null like any other.
      if (!is_present(*tensor, problem)) {
        argument.kind = Argument::Kind::tensor;
        break;
      }
      TRY_ASSIGN(argument.map, bind_map(spec.map, tensor_dtype(*tensor, problem), bound, field));
      break;
    }
    case Argument::Kind::workspace:
      argument.expr = spec.expr.bind(bound);
      argument.align_bytes = spec.align_bytes;
      argument.init = spec.init;
      break;
  }
  return argument;
}

RecipeTensor bind_tensor(const TensorSpec& spec, const Manifest& manifest, const Problem& problem) {
  RecipeTensor tensor;
  tensor.name = spec.name;
  tensor.output = spec.role == Role::output;
  tensor.present = is_present(spec, problem);
  tensor.dtype = tensor_dtype(spec, problem);
  tensor.shape = spec.shape;
  if (spec.shape.size() == 2) tensor.stride_symbol = spec.stride_symbol();
  const auto align = manifest.align_bytes.find(spec.name);
  if (align != manifest.align_bytes.end()) tensor.align_bytes = align->second;
  return tensor;
}

}  // namespace

Result<KernelSpec> instantiate(const Manifest& manifest, const OpSpec& op, const Variant& variant,
                               const Problem& problem, const DeviceSpec& device) {
  TRY_ASSIGN(const VariantResolver resolver, VariantResolver::make(manifest, op, problem, device));
  TRY_ASSIGN(const std::vector<std::int64_t> values, resolver.values_of(variant));
  ResolvedVariant resolved;
  TRY(resolver.resolve(values, resolved));
  Symbols bound = resolver.kernel_symbols();
  bound.merge(resolved.symbols);

  KernelSpec kernel;
  kernel.variant = variant;
  kernel.threads = resolved.threads;
  kernel.defines = defines_of(manifest, op, resolved.symbols, problem);
  Recipe& recipe = kernel.recipe;
  recipe.entry = manifest.entry;
  recipe.deterministic = resolved.deterministic;
  for (const TensorSpec& tensor : op.tensors) recipe.tensors.push_back(bind_tensor(tensor, manifest, problem));
  for (std::size_t i = 0; i < manifest.arguments.size(); ++i) {
    const std::string field = "arguments[" + std::to_string(i) + "]";
    TRY_ASSIGN(Argument argument, bind_argument(manifest.arguments[i], op, problem, bound, field));
    recipe.arguments.push_back(std::move(argument));
  }
  recipe.launch.block = resolved.block;
  recipe.launch.cluster = resolved.cluster;
  recipe.launch.dynamic_smem_bytes = resolved.dynamic_smem_bytes;
  recipe.launch.pdl = manifest.pdl && device.cc >= 90;  // older devices know no such launch
  recipe.launch.cooperative = manifest.cooperative;
  for (std::size_t i = 0; i < 3; ++i) recipe.launch.grid[i] = manifest.grid[i].bind(bound);
  for (const Rule& rule : manifest.validity) recipe.checks.push_back(Rule{rule.expr.bind(bound), rule.reason});
  return kernel;
}

}  // namespace tunerd
