// The parts of a recipe that people and scripts read: expressions evaluated for one problem where they evaluate.
#pragma once

#include "model/recipe.h"

namespace tunerd::wire {

// {grid, block, cluster, dynamic_smem_bytes, workspace_bytes|null, pdl, cooperative}; a grid that does not evaluate for
// `problem` (Problem::to_json) is given as expressions.
Json readable_launch(const Recipe& recipe, const Json& problem);
// One object an argument, in the kernel's order: {kind, name, …}.
Json readable_arguments(const Recipe& recipe, const Json& problem);

}  // namespace tunerd::wire
