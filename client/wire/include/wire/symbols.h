// The symbols a recipe's expressions range over, made from sizes alone: what a client needs to launch a kernel.
#pragma once

#include <map>
#include <string>

#include "model/recipe.h"

namespace tunerd::wire {

// dims; for every rank-2 tensor its row stride (`strides`, else its second extent); has_<tensor>, bytes_<tensor> and
// dtype_bytes of `dtype`. Errors: a shape that does not evaluate, a stride of a tensor that has none or below its row.
Result<Symbols> recipe_symbols(const Recipe& recipe, const std::map<std::string, std::int64_t>& dims,
                               const std::map<std::string, std::int64_t>& strides, DType dtype);
// The same for a problem as Problem::to_json writes it.
Result<Symbols> recipe_symbols(const Recipe& recipe, const Json& problem);

}  // namespace tunerd::wire
