// A daemon whose device does what a plan says.
#pragma once

#include "harness/check.h"

namespace tunerd::test {

inline DaemonOptions with_faulty_device(const TemporaryFolder& home, const Json& plan,
                                        std::vector<std::string> flags = {"--no-tune"}) {
  write_text(home / "plan.json", plan.dump());
  DaemonOptions options = with_twice(std::move(flags));
  options.offline.clear();
  options.environment["TUNERD_WORKER"] = TUNERD_BINARY_DIR "/tests/tunerd-faulty-worker";
  options.environment["FAULTY_WORKER_PLAN"] = (home / "plan.json").string();
  return options;
}
// How often a variant with this part in its text was measured since the file was last removed.
inline int times_measured(const TemporaryFolder& home, const std::string& part, const std::string& kind = "verify ") {
  const std::string log = read_text(home / "plan.json.log");
  int count = 0;
  for (std::size_t begin = 0, end = 0; (end = log.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = log.substr(begin, end - begin);
    count += line.rfind(kind, 0) == 0 && line.find(part) != std::string::npos;
  }
  return count;
}

}  // namespace tunerd::test
