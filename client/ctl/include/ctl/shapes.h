// Problems as users write them: words on a command line, and shape files.
#pragma once

#include <string>
#include <vector>

#include "model/json_reader.h"

namespace tunerd::ctl {

inline constexpr std::size_t kMaxShapes = 100'000;

// {"m":16,"dtype":"bf16"} from "m=16" "dtype=bf16". Errors: a word without '=', a name given twice.
Result<Json> fields_from_words(const std::vector<std::string>& words);
// The same with the op, as it travels in a request: {"op":"gemm","m":16}.
Result<Json> problem_from_words(const std::string& op, const std::vector<std::string>& words);
// "gemm m=16 n=4096 dtype=bf16", to name a problem whose key only the daemon knows.
std::string describe(const Json& problem);

// {"problems":[{"op":…}]}, a bare list, one object, or JSON lines. `where` names the file in errors; each problem must
// be an object with an op, the rest is checked by whoever knows the op.
Result<std::vector<Json>> parse_shapes(const std::string& text, const std::string& where);
Result<std::vector<Json>> read_shapes(const std::string& file);  // "-": standard input

}  // namespace tunerd::ctl
