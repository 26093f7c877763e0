// Template sources: the closure of quoted includes, read whole, hashed whole.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "model/result.h"

namespace tunerd {

// `headers` maps each quoted include name, as written, to its text. `digest` covers the source and every header, names
// included.
struct SourceClosure {
  std::string name;  // file name of the source
  std::string text;
  std::vector<std::pair<std::string, std::string>> headers;  // sorted by name
  std::string digest;
};

// `#include "x"` is looked up in `folder`, then in each of `include_roots`; an include that leaves all of them (..,
// absolute, symlink out), is missing, uses <…>, or makes the closure exceed 64 files or 1 MiB is an error naming file
// and line.
Result<SourceClosure> load_closure(const std::filesystem::path& folder, const std::string& file,
                                   const std::vector<std::filesystem::path>& include_roots);

// Key of a compiled kernel: digest of the closure digest, entry, defines, architecture, NVRTC version and fixed
// options.
std::string kernel_key(const SourceClosure& closure, const std::string& entry, const std::vector<std::string>& defines,
                       const std::string& arch, const std::string& nvrtc_version);

}  // namespace tunerd
