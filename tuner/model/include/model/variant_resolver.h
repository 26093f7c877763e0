// A manifest with everything but its parameters folded in: judges and costs thousands of variants of one problem fast.
#pragma once

#include <array>
#include <vector>

#include "model/manifest.h"

namespace tunerd {

// What a choice of parameters comes to, whatever the problem's size.
struct ResolvedVariant {
  Symbols symbols;  // parameters, then derived values
  std::array<std::int64_t, 3> block{1, 1, 1};
  std::array<std::int64_t, 3> cluster{1, 1, 1};
  std::int64_t threads = 0;
  std::int64_t dynamic_smem_bytes = 0;
  bool deterministic = true;
};

// Thread-compatible and immutable once made. Keeps a pointer to the manifest, which must outlive it.
class VariantResolver {
 public:
  // Errors: the template does not serve the device's architecture, the problem's dtype or an attribute (the message
  // says which); the problem's symbols overflow.
  static Result<VariantResolver> make(const Manifest& manifest, const OpSpec& op, const Problem& problem,
                                      const DeviceSpec& device);

  // The values of `variant` in the manifest's order. Errors: another template's, a parameter missing, unknown or
  // outside its values.
  Result<std::vector<std::int64_t>> values_of(const Variant& variant) const;

  // Fills `out` (a scratch that may be used again for the next variant). The error is the first reason why the variant
  // does not exist on this device: a derived value that cannot be computed, a constraint, a block, cluster or shared
  // memory past the device's limits.
  Status resolve(const std::vector<std::int64_t>& values, ResolvedVariant& out) const;

  // Whether the variant is right at the problem's size: determinism, validity, a grid within the driver's limits.
  Status fits(const ResolvedVariant& variant) const;

  // Whether a search at this size should try it: it is not the same as another variant here.
  Status worth_trying(const ResolvedVariant& variant) const;

  // Thread blocks of the launch at the problem's size.
  Result<std::int64_t> blocks(const ResolvedVariant& variant) const;

  // dtype_bytes, has_<tensor>, and the device's: constant for a kernel.
  const Symbols& kernel_symbols() const { return kernel_symbols_; }
  // The above and everything that follows from the problem's size.
  const Symbols& problem_symbols() const { return problem_symbols_; }

 private:
  Unexpected broken(const Rule& rule, const std::string& field, const ResolvedVariant& variant) const;
  Status limits(const ResolvedVariant& variant) const;

  const Manifest* manifest_ = nullptr;
  Symbols kernel_symbols_, problem_symbols_;
  bool allow_nondeterministic_ = false;
  int cc_ = 0;
  std::int64_t smem_per_block_bytes_ = 0;
  // Bound copies, in the manifest's order.
  std::vector<Expr> derived_, constraints_, validity_, search_;
  std::array<Expr, 3> grid_, block_, cluster_;
  Expr dynamic_smem_bytes_, deterministic_;
};

}  // namespace tunerd
