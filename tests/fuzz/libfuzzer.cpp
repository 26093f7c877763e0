// One libFuzzer program a target: FUZZ_TARGET names it. `-dump_seeds=FOLDER` as the only argument writes the seeds.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "targets.h"

namespace {

const tunerd::fuzz::Target& target() {
  static const auto& found = [&]() -> const tunerd::fuzz::Target& {
    for (const auto& candidate : tunerd::fuzz::targets())
      if (std::strcmp(candidate.name, FUZZ_TARGET) == 0) return candidate;
    std::abort();
  }();
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr char option[] = "-dump_seeds=";
  if (*argc == 2 && std::strncmp((*argv)[1], option, sizeof option - 1) == 0) {
    int number = 0;
    for (const std::string& seed : target().seeds())
      std::ofstream(std::string((*argv)[1] + sizeof option - 1) + "/seed" + std::to_string(number++), std::ios::binary)
          << seed;
    std::exit(0);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  target().run({reinterpret_cast<const char*>(data), size});
  return 0;
}
