// The near rung: the tuned problem most like this one.
#pragma once

#include <optional>
#include <vector>

#include "model/problem.h"

namespace tunerd {

// Index into `tuned` (all of the wanted problem's family) by increasing distance sum |log2(d/d')| over dimensions.
// Ties: lower index.
std::vector<std::size_t> by_distance(const Problem& wanted, const std::vector<Problem>& tuned);

}  // namespace tunerd
