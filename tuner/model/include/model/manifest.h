// A template: CUDA source plus the manifest that says which variants it has, where they are right, and how to launch
// them.
//
// Symbols in expressions, by stage:
//   variant: parameters, derived values, device symbols (DeviceSpec::symbols()), dtype_bytes, has_<tensor>. For derived
//            (in any order, without a cycle), constraints, block, cluster, dynamic_smem_bytes, box, tile, granularity,
//            deterministic: what a variant is does not depend on the problem's size.
//   sized:   also dimensions and ld_<tensor>. For validity, grid, scalars, workspace, dims and strides of tensor maps.
//   cost:    also bytes_<tensor>. For cost.
// A name outside its stage is an error of parse_manifest, which names the field.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/device.h"
#include "model/op.h"
#include "model/problem.h"
#include "model/recipe.h"

namespace tunerd {

struct Param {
  std::string name;                  // becomes -DNAME=value, upper case
  std::vector<std::int64_t> values;  // every allowed value
};

// A named value computed from parameters; also becomes -DNAME=value when `define`.
struct Derived {
  std::string name;
  Expr expr;
  bool define = false;
};

struct TensorMapSpec {
  std::vector<Expr> dims, strides_bytes, box;
  std::string swizzle = "none", l2_promotion = "none";
  std::map<std::int64_t, std::string> swizzle_by_inner_bytes;  // optional: chooses by box[0]*dtype_bytes
};

struct ArgumentSpec {
  Argument::Kind kind = Argument::Kind::tensor;
  std::string name, type, real, init = "none";
  Expr expr;
  TensorMapSpec map;
  std::int64_t align_bytes = 256;
};

// What the analytic model needs, per launch. Absent parts default as noted.
struct CostSpec {
  Expr tiles;                // independent thread blocks
  Expr tile_flops;           // flops of one block, padding included (0: flops / tiles)
  Expr tile_bytes;           // bytes one block reads and writes through L2
  Expr dram_bytes;           // bytes from and to DRAM (0: the op's fused bytes)
  Expr serial_steps;         // dependent main-loop steps of one block
  Expr step_latency_ns;      // exposed latency of one step
  Expr efficiency_permille;  // of the SM's peak while computing (default 700)
};

struct Manifest {
  std::string name;
  std::string op;
  std::filesystem::path folder;
  std::string source;  // file in the folder
  std::string entry;
  std::vector<std::string> archs;  // exact architectures ("sm_90a"), or empty for min_cc and up
  int min_cc = 75;
  std::vector<DType> dtypes;                                   // empty: all the op's
  std::map<std::string, std::vector<std::string>> attributes;  // supported values; an absent attribute: all
  std::vector<Param> params;
  std::vector<Derived> derived;  // each after those it names
  std::vector<Rule> constraints;
  std::vector<Rule> validity;
  std::vector<Rule>
      search;  // sized: where one fails the variant is right, but another does the same and is tried instead
  std::vector<ArgumentSpec> arguments;
  std::array<Expr, 3> grid, block, cluster;
  Expr dynamic_smem_bytes;
  Expr threads;                                     // product of block, for the model
  std::map<std::string, std::int64_t> align_bytes;  // per tensor; default 16
  bool pdl = false;
  bool cooperative = false;
  bool fallback = false;  // valid for every shape of the op: the last rung
  Rule deterministic{Expr(1), ""};
  std::map<std::string, Expr> tile;         // dimension -> tile size, for edge shapes and ranking
  std::map<std::string, Expr> granularity;  // dimension -> what validity needs it to be a multiple of (default 1)
  CostSpec cost;

  bool supports_arch(const std::string& arch) const;
  bool supports(const Problem& problem) const;  // dtype and attributes
};

Result<Manifest> parse_manifest(const Json& document, const OpSpec& op, const std::string& where);

// A template with a value for every parameter. Describes itself: "gemm_mma{bk=32,bm=128,…}", parameters by name.
struct Variant {
  std::string template_name;
  std::map<std::string, std::int64_t> params;
  std::string text() const;
  static Result<Variant> parse(std::string_view text);
  auto operator<=>(const Variant&) const = default;
};

// Every parameter named and allowed, every constraint true on this device. The error says which is not, and why.
Status check_variant(const Manifest& manifest, const OpSpec& op, const Variant& variant, const Problem& problem,
                     const DeviceSpec& device);

// Everything needed to compile and launch a variant for a family of problems (dtype, attributes), sizes left free.
struct KernelSpec {
  Variant variant;
  std::vector<std::string> defines;  // "-DBM=128", sorted, unique: parameters and defined derived values in upper case,
                                     // -DDTYPE_BF16=1, -D<ATTRIBUTE>_<VALUE>=1, -DHAS_<TENSOR>=0|1
  Recipe recipe;
  std::int64_t threads = 0;
};
// Errors as check_variant, and expressions that fail or box dims/cluster that are not constant. Does not check validity
// for the size. The map of an absent tensor becomes a null tensor argument.
Result<KernelSpec> instantiate(const Manifest& manifest, const OpSpec& op, const Variant& variant,
                               const Problem& problem, const DeviceSpec& device);

// All symbols a manifest expression may use for this variant on this problem: params, derived, device, problem.
Result<Symbols> variant_symbols(const Manifest& manifest, const OpSpec& op, const Variant& variant,
                                const Problem& problem, const DeviceSpec& device);

// Sizes that verification must also pass: for each tile, one below, one above, two tiles plus one, and all ones;
// rounded to the granularity away from the tile's border, kept only where valid, each within 2^22 elements a tensor.
// Dims without a tile get small odd sizes, or the problem's own where a variant is valid for no others. The last one
// has padded strides in every rank-2 tensor, unless no padding is valid. At most six, never the problem itself.
Result<std::vector<Problem>> edge_problems(const Manifest& manifest, const OpSpec& op, const KernelSpec& kernel,
                                           const Problem& problem, const DeviceSpec& device);

}  // namespace tunerd
