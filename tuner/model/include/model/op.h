// An op: a function with named dimensions, dtypes and attributes, its tensors, its cost, its reference. From op.json.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "model/dtype.h"
#include "model/expr.h"

namespace tunerd {

struct DimSpec {
  std::string name;
  std::int64_t min = 1;
  std::int64_t max = std::int64_t{1} << 31;
};

// An enumerated attribute is part of a problem's key; a real one (eps) is a launch-time scalar and is not.
struct AttributeSpec {
  std::string name;
  bool real = false;
  std::vector<std::string> values;  // enumerated: the allowed values
  std::string default_value;        // enumerated
  double default_real = 0;          // real
};

enum class Role { input, output };

struct TensorSpec {
  std::string name;
  Role role = Role::input;
  std::vector<Expr> shape;  // elements per dimension, over dimension names; row-major, last one contiguous
  std::string dtype;        // "$dtype" (the problem's) or a dtype name
  std::string distribution = "gaussian";  // gaussian | uniform01 | positive: how timing and gate-2 inputs are drawn
  std::map<std::string, std::vector<std::string>> when;  // present only for these attribute values; empty = always

  // Rank-2 tensors have a row stride in elements, the symbol "ld_<name>", which is shape[1] unless a problem pads it.
  std::string stride_symbol() const { return "ld_" + name; }
};

struct Tolerance {
  double c = 2.0;  // gate 2 accepts |out - ref| <= c * (eps_out * |ref| + err), err from the reference kernel
  // With integer-valued inputs the result is exact in fp32 in any order, so outputs must match bitwise, when every
  // attribute listed has one of its listed values. `exact` false: never.
  bool exact = false;
  std::map<std::string, std::vector<std::string>> exact_when;
};

struct Reference {
  std::string source;  // file in the op's folder
  std::string entry;
};

struct OpSpec {
  std::string name;
  std::string summary;
  std::filesystem::path folder;  // where op.json lies; empty when parsed from a message
  std::vector<DimSpec> dims;
  std::vector<DType> dtypes;
  std::vector<AttributeSpec> attributes;
  std::vector<TensorSpec> tensors;
  Expr flops;           // over dims, has_<tensor>
  Expr fused_bytes;     // over dims, bytes_<tensor> (0 when absent), dtype_bytes
  std::string compute;  // "tensor": peak of the problem's dtype; "fp32": the vector peak
  Tolerance tolerance;
  Reference reference;
  Json document;  // op.json as read, so that it can travel to a worker

  const DimSpec* dim(std::string_view name) const;
  const AttributeSpec* attribute(std::string_view name) const;
  const TensorSpec* tensor(std::string_view name) const;
};

// `where` names the file in errors.
Result<OpSpec> parse_op(const Json& document, const std::string& where);

}  // namespace tunerd
