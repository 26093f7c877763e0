// A problem: an op with concrete dimensions, dtype, attributes and row strides. Its key is complete and typed.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/op.h"

namespace tunerd {

struct Problem {
  std::string op;
  std::map<std::string, std::int64_t> dims;
  DType dtype = DType::bf16;
  std::map<std::string, std::string> attributes;  // every enumerated one, defaults filled in
  std::map<std::string, double> reals;            // every real one; not in the key
  std::map<std::string, std::int64_t> strides;    // "ld_<tensor>" -> elements, only where padded (> shape[1])
  bool allow_nondeterministic = false;

  // "gemm{m=16,n=4096,k=4096,dtype=bf16,epilogue=none}": dims in the op's order, then dtype, attributes by name,
  // padded strides by name, "nondeterministic=1" when allowed. Equal problems have equal keys.
  std::string key(const OpSpec& op) const;
  // The part of the key that must agree for a neighbour's winner to be considered: op, dtype, attributes,
  // nondeterminism.
  std::string family() const;
  Json to_json() const;  // {"op":…, "dims":{…}, "dtype":…, "attributes":{…}, "reals":{…}, "strides":{…},
                         // "allow_nondeterministic":…}
  bool operator==(const Problem&) const = default;
};

// Builds and checks a problem from a flat object as users and shape files write it:
// {"m":16,"n":4096,"k":4096,"dtype":"bf16","epilogue":"none"}; "op" and "from" are skipped. Values may be numbers or
// numeric strings. Errors: unknown field (near match), missing dimension, dimension out of range, bad dtype or
// attribute, a stride below its row, more than 2^62 bytes in a tensor.
Result<Problem> make_problem(const OpSpec& op, const Json& fields);
// The same from "m=16" words, as on a command line.
Result<Problem> make_problem(const OpSpec& op, const std::vector<std::string>& words);
Result<Problem> problem_from_json(const OpSpec& op, const Json& json);  // inverse of Problem::to_json, fully checked

bool is_present(const TensorSpec& tensor, const Problem& problem);
DType tensor_dtype(const TensorSpec& tensor, const Problem& problem);
// dims, dtype_bytes, and per tensor: ld_<t> (rank 2), has_<t>, bytes_<t> (compulsory bytes: elements*size, 0 when
// absent).
Result<Symbols> problem_symbols(const OpSpec& op, const Problem& problem);
// Elements of the smallest buffer that holds the tensor with its row stride: (rows-1)*ld + cols.
Result<std::int64_t> tensor_span_elements(const TensorSpec& tensor, const Symbols& symbols);

}  // namespace tunerd
