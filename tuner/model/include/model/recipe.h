// How to launch a kernel: what each argument is, the grid, the checks. Travels in answers; a client needs nothing else.
//
// Expressions range over the problem's symbols (dimensions, ld_<tensor>) only: template parameters are folded in. The
// same recipe therefore launches the kernel for any size that passes `checks`.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "model/dtype.h"
#include "model/expr.h"

namespace tunerd {

// A tensor as the kernel sees it. Absent optional tensors are listed with present = false and passed as null.
struct RecipeTensor {
  std::string name;
  bool output = false;
  bool present = true;
  DType dtype = DType::bf16;
  std::vector<Expr> shape;        // elements
  std::string stride_symbol;      // "ld_x" for rank 2, else ""
  std::int64_t align_bytes = 16;  // the pointer's required alignment
  bool operator==(const RecipeTensor&) const = default;
};

struct TensorMap {
  DType dtype = DType::bf16;
  std::vector<Expr> dims;             // innermost first, elements
  std::vector<Expr> strides_bytes;    // one fewer than dims, from the second dimension on
  std::vector<std::int64_t> box;      // innermost first, elements
  std::string swizzle = "none";       // none | 32B | 64B | 128B
  std::string l2_promotion = "none";  // none | 64B | 128B | 256B
  bool operator==(const TensorMap&) const = default;
};

struct Argument {
  enum class Kind { tensor, scalar, tensor_map, workspace };
  Kind kind = Kind::tensor;
  std::string name;         // tensor: its name; tensor_map: the tensor it maps; scalar: a label; workspace: "workspace"
  std::string type;         // scalar: i32 | i64 | f32
  Expr expr;                // scalar (i32, i64): its value; workspace: bytes
  std::string real;         // scalar f32: the op's real attribute
  double real_default = 0;  // as the problem says, else the op's default
  TensorMap map;            // tensor_map
  std::int64_t align_bytes = 256;  // workspace
  std::string init = "none";       // workspace: none | zero_once (kernel leaves it zeroed) | zero_each
  bool operator==(const Argument&) const = default;
};

struct Launch {
  std::array<Expr, 3> grid;
  std::array<std::int64_t, 3> block{1, 1, 1};
  std::array<std::int64_t, 3> cluster{1, 1, 1};
  std::int64_t dynamic_smem_bytes = 0;
  bool pdl = false;  // may be launched with programmatic stream serialization
  bool cooperative = false;
  bool operator==(const Launch&) const = default;
};

struct Recipe {
  int version = 1;
  std::string entry;
  std::vector<RecipeTensor> tensors;
  std::vector<Argument> arguments;  // in the order of the kernel's parameters
  Launch launch;
  std::vector<Rule> checks;  // the variant's validity, over the problem's symbols
  bool deterministic = true;
  bool operator==(const Recipe&) const = default;
};

Json to_json(const Recipe& recipe);
Result<Recipe> recipe_from_json(const Json& json);

// The first check that `symbols` break, as an error that gives the reason and the values; ok when all hold.
Status check_validity(const std::vector<Rule>& checks, const Symbols& symbols);

// A launch with every expression evaluated. Errors: a check fails; a grid dimension outside 1..2^31-1 (x), 1..65535 (y,
// z).
struct ConcreteLaunch {
  std::array<std::int64_t, 3> grid{1, 1, 1};
  std::array<std::int64_t, 3> block{1, 1, 1};
  std::array<std::int64_t, 3> cluster{1, 1, 1};
  std::int64_t dynamic_smem_bytes = 0;
  std::int64_t workspace_bytes = 0;
};
Result<ConcreteLaunch> concrete_launch(const Recipe& recipe, const Symbols& symbols);

}  // namespace tunerd
