#include "model/variant_resolver.h"

#include <algorithm>

namespace tunerd {
namespace {

constexpr std::int64_t kMaxThreads = 1024;
constexpr std::int64_t kMaxBlockZ = 64;
constexpr std::int64_t kMaxClusterBlocks = 16;  // 8 everywhere, 16 where a kernel opts in
constexpr std::int64_t kMaxGridX = 2147483647;
constexpr std::int64_t kMaxGridYz = 65535;

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : ", ").append(word);
  return text;
}

// The message alone must do: it is what a list of variants shows.
Unexpected refuse(std::string message, std::string field, std::string value, std::string expected) {
  return Unexpected(
      Error{Code::invalid_argument, std::move(message), std::move(field), std::move(value), std::move(expected), {}});
}

Unexpected not_served(const Manifest& manifest, const std::string& field, const std::string& value,
                      const std::string& expected) {
  return refuse(manifest.name + " does not serve " + field + "=" + value + ", only " + expected, field, value,
                expected);
}

// Why the template cannot serve the problem at all, by the field at fault.
Status check_support(const Manifest& manifest, const Problem& problem, const DeviceSpec& device) {
  if (problem.op != manifest.op) return not_served(manifest, "op", problem.op, manifest.op);
  if (!manifest.supports_arch(device.arch)) {
    const std::string newest = "compute capability " + std::to_string(manifest.min_cc / 10) + "." +
                               std::to_string(manifest.min_cc % 10) + " and newer";
    return not_served(manifest, "arch", device.arch, manifest.archs.empty() ? newest : joined(manifest.archs));
  }
  if (manifest.supports(problem)) return {};
  for (const auto& [name, supported] : manifest.attributes) {
    const auto value = problem.attributes.find(name);
    const std::string text = value == problem.attributes.end() ? "(missing)" : value->second;
    if (std::find(supported.begin(), supported.end(), text) == supported.end()) {
      return not_served(manifest, name, text, joined(supported));
    }
  }
  std::vector<std::string> dtypes;
  for (DType dtype : manifest.dtypes) dtypes.emplace_back(to_string(dtype));
  return not_served(manifest, "dtype", std::string(to_string(problem.dtype)), joined(dtypes));
}

Unexpected in_field(const Manifest& manifest, const std::string& field, Error error) {
  error.message = manifest.name + ": " + field + ": " + error.message;
  error.field = field;
  return Unexpected(std::move(error));
}

Unexpected over_limit(const std::string& field, std::int64_t value, const std::string& expected) {
  const std::string text = std::to_string(value);
  return refuse(field + " is " + text + ", expected " + expected, field, text, expected);
}

}  // namespace

Result<VariantResolver> VariantResolver::make(const Manifest& manifest, const OpSpec& op, const Problem& problem,
                                              const DeviceSpec& device) {
  TRY(check_support(manifest, problem, device));
  VariantResolver resolver;
  resolver.manifest_ = &manifest;
  resolver.allow_nondeterministic_ = problem.allow_nondeterministic;
  resolver.cc_ = device.cc;
  resolver.smem_per_block_bytes_ = device.smem_per_block_bytes;
  Symbols& kernel = resolver.kernel_symbols_;
  kernel = device.symbols();
  kernel.set("dtype_bytes", size_bytes(problem.dtype));
  for (const TensorSpec& tensor : op.tensors) kernel.set("has_" + tensor.name, is_present(tensor, problem) ? 1 : 0);
  TRY_ASSIGN(resolver.problem_symbols_, tunerd::problem_symbols(op, problem));
  resolver.problem_symbols_.merge(kernel);

  for (const Derived& derived : manifest.derived) resolver.derived_.push_back(derived.expr.bind(kernel));
  for (const Rule& rule : manifest.constraints) resolver.constraints_.push_back(rule.expr.bind(kernel));
  for (const Rule& rule : manifest.validity) resolver.validity_.push_back(rule.expr.bind(resolver.problem_symbols_));
  for (const Rule& rule : manifest.search) resolver.search_.push_back(rule.expr.bind(resolver.problem_symbols_));
  for (std::size_t i = 0; i < 3; ++i) {
    resolver.grid_[i] = manifest.grid[i].bind(resolver.problem_symbols_);
    resolver.block_[i] = manifest.block[i].bind(kernel);
    resolver.cluster_[i] = manifest.cluster[i].bind(kernel);
  }
  resolver.dynamic_smem_bytes_ = manifest.dynamic_smem_bytes.bind(kernel);
  resolver.deterministic_ = manifest.deterministic.expr.bind(kernel);
  return resolver;
}

Result<std::vector<std::int64_t>> VariantResolver::values_of(const Variant& variant) const {
  if (variant.template_name != manifest_->name) {
    return bad_input("template", variant.template_name, manifest_->name);
  }
  std::vector<std::string> names;
  for (const Param& param : manifest_->params) names.push_back(param.name);
  for (const auto& given : variant.params) {
    if (std::find(names.begin(), names.end(), given.first) == names.end()) {
      return unknown_name("params", given.first, names);
    }
  }
  std::vector<std::int64_t> values;
  for (const Param& param : manifest_->params) {
    const auto given = variant.params.find(param.name);
    std::vector<std::string> allowed;
    for (const std::int64_t value : param.values) allowed.push_back(std::to_string(value));
    if (given == variant.params.end()) {
      return bad_input("params." + param.name, "(missing)", "one of " + joined(allowed));
    }
    if (std::find(param.values.begin(), param.values.end(), given->second) == param.values.end()) {
      return bad_input("params." + param.name, std::to_string(given->second), "one of " + joined(allowed));
    }
    values.push_back(given->second);
  }
  return values;
}

Unexpected VariantResolver::broken(const Rule& rule, const std::string& field, const ResolvedVariant& variant) const {
  std::string values;
  for (const std::string& name : rule.expr.names()) {
    const std::int64_t* value = variant.symbols.find(name);
    if (value == nullptr) value = problem_symbols_.find(name);
    if (value == nullptr) continue;
    values.append(values.empty() ? "" : " ").append(name).append("=").append(std::to_string(*value));
  }
  std::string message = rule.reason;
  if (!values.empty()) message.append(" (").append(values).append(")");
  return Unexpected(Error{Code::invalid_argument, std::move(message), field, std::move(values), rule.expr.text(), {}});
}

Status VariantResolver::limits(const ResolvedVariant& variant) const {
  const auto& block = variant.block;
  for (const std::int64_t extent : block) {
    if (extent < 1 || extent > kMaxThreads) return over_limit("launch.block", extent, "1 to 1024");
  }
  if (variant.threads > kMaxThreads) return over_limit("launch.block", variant.threads, "at most 1024 threads");
  if (block[2] > kMaxBlockZ) return over_limit("launch.block[2]", block[2], "at most 64");
  std::int64_t cluster_blocks = 1;
  for (const std::int64_t extent : variant.cluster) {
    if (extent < 1 || extent > kMaxClusterBlocks) return over_limit("launch.cluster", extent, "1 to 16");
    cluster_blocks *= extent;
  }
  if (cluster_blocks > kMaxClusterBlocks) return over_limit("launch.cluster", cluster_blocks, "at most 16 blocks");
  if (cluster_blocks > 1 && cc_ < 90) {
    return over_limit("launch.cluster", cluster_blocks, "1: clusters need compute capability 9.0");
  }
  if (variant.dynamic_smem_bytes < 0 || variant.dynamic_smem_bytes > smem_per_block_bytes_) {
    return over_limit("launch.dynamic_smem_bytes", variant.dynamic_smem_bytes,
                      "0 to " + std::to_string(smem_per_block_bytes_) + ", what a block of this device may have");
  }
  return {};
}

Status VariantResolver::resolve(const std::vector<std::int64_t>& values, ResolvedVariant& out) const {
  if (values.size() != manifest_->params.size()) return fail(Code::internal, "as many values as parameters");
  Symbols& symbols = out.symbols;
  for (std::size_t i = 0; i < values.size(); ++i) symbols.set(manifest_->params[i].name, values[i]);
  for (std::size_t i = 0; i < derived_.size(); ++i) {
    const Result<std::int64_t> value = derived_[i].eval(symbols);
    if (!value) return in_field(*manifest_, "derived." + manifest_->derived[i].name, value.error());
    symbols.set(manifest_->derived[i].name, *value);
  }
  for (std::size_t i = 0; i < constraints_.size(); ++i) {
    const Result<std::int64_t> holds = constraints_[i].eval(symbols);
    if (holds && *holds != 0) continue;
    const std::string field = "constraints[" + std::to_string(i) + "]";
    if (!holds) return in_field(*manifest_, field, holds.error());
    return broken(manifest_->constraints[i], field, out);
  }
  out.threads = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    const Result<std::int64_t> block = block_[i].eval(symbols);
    if (!block) return in_field(*manifest_, "launch.block", block.error());
    const Result<std::int64_t> cluster = cluster_[i].eval(symbols);
    if (!cluster) return in_field(*manifest_, "launch.cluster", cluster.error());
    out.block[i] = *block;
    out.cluster[i] = *cluster;
    // Clamped so that the product of three cannot overflow; limits() refuses what was clamped.
    out.threads *= std::clamp<std::int64_t>(*block, 0, 2 * kMaxThreads);
  }
  const Result<std::int64_t> smem = dynamic_smem_bytes_.eval(symbols);
  if (!smem) return in_field(*manifest_, "launch.dynamic_smem_bytes", smem.error());
  out.dynamic_smem_bytes = *smem;
  const Result<std::int64_t> deterministic = deterministic_.eval(symbols);
  if (!deterministic) return in_field(*manifest_, "deterministic", deterministic.error());
  out.deterministic = *deterministic != 0;
  return limits(out);
}

Status VariantResolver::fits(const ResolvedVariant& variant) const {
  if (!variant.deterministic && !allow_nondeterministic_) {
    return broken(manifest_->deterministic, "deterministic", variant);
  }
  for (std::size_t i = 0; i < validity_.size(); ++i) {
    const Result<std::int64_t> holds = validity_[i].eval(variant.symbols);
    if (holds && *holds != 0) continue;
    const std::string field = "validity[" + std::to_string(i) + "]";
    if (!holds) return in_field(*manifest_, field, holds.error());
    return broken(manifest_->validity[i], field, variant);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const Result<std::int64_t> extent = grid_[i].eval(variant.symbols);
    if (!extent) return in_field(*manifest_, "launch.grid", extent.error());
    const std::string field = "launch.grid[" + std::to_string(i) + "]";
    const std::int64_t most = i == 0 ? kMaxGridX : kMaxGridYz;
    if (*extent < 1 || *extent > most) return over_limit(field, *extent, "1 to " + std::to_string(most));
    if (*extent % variant.cluster[i] != 0) {
      return over_limit(field, *extent, "a multiple of the cluster's " + std::to_string(variant.cluster[i]));
    }
  }
  return {};
}

Status VariantResolver::worth_trying(const ResolvedVariant& variant) const {
  for (std::size_t i = 0; i < search_.size(); ++i) {
    const Result<std::int64_t> holds = search_[i].eval(variant.symbols);
    if (holds && *holds != 0) continue;
    const std::string field = "search[" + std::to_string(i) + "]";
    if (!holds) return in_field(*manifest_, field, holds.error());
    return broken(manifest_->search[i], field, variant);
  }
  return {};
}

Result<std::int64_t> VariantResolver::blocks(const ResolvedVariant& variant) const {
  std::int64_t blocks = 1;
  for (const Expr& expr : grid_) {
    TRY_ASSIGN(const std::int64_t extent, expr.eval(variant.symbols));
    if (extent < 0 || __builtin_mul_overflow(blocks, extent, &blocks)) {
      return over_limit("launch.grid", extent, "a grid whose block count fits 64 bits");
    }
  }
  return blocks;
}

}  // namespace tunerd
