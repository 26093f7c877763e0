// Files that must not leave their folder.
#pragma once

#include <filesystem>
#include <string>

#include "model/result.h"

namespace tunerd {

// The real path of `name` below `root`, links followed. Errors: not_found when there is no such file; anything else
// when the name is absolute, has "..", is no regular file, or links out of `root`.
Result<std::filesystem::path> resolve_inside(const std::filesystem::path& root, const std::string& name);

}  // namespace tunerd
