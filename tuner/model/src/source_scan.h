// Finds the include directives of a CUDA source without preprocessing it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/result.h"

namespace tunerd {

struct IncludeLine {
  std::string name;  // between the quotes
  int line = 0;
};

// Every directive counts, also one in a branch that some defines switch off. Comments, strings and continued lines are
// understood. Errors, naming `file` and line: <…> includes, a name that is not a quoted literal, include_next, embed,
// import.
Result<std::vector<IncludeLine>> scan_includes(std::string_view text, const std::string& file);

}  // namespace tunerd
