// The parsers that read bytes of others, one function each: none may crash, hang or run out of memory whatever the
// bytes. Each is a libFuzzer target when built with clang and -DTUNERD_FUZZ=ON, and is mutated for two seconds in every
// CTest run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tunerd::fuzz {

struct Target {
  const char* name;
  bool (*run)(std::string_view bytes);  // true when the bytes were accepted
  std::vector<std::string> (*seeds)();  // well-formed inputs to start from
};

const std::vector<Target>& targets();

}  // namespace tunerd::fuzz
