// What the daemon's tests say often.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "harness/client.h"
#include "harness/daemon.h"
#include "harness/folder.h"

namespace tunerd::test {

// The value, or the test ends with the daemon's sentence.
template <class T>
T must(Result<T> result) {
  if (!result) FAIL(result.error().text());
  return std::move(result).value();
}
inline void must(const Status& status) {
  if (!status) FAIL(status.error().text());
}
// The error of a call that had to fail.
template <class T>
Error must_fail(Result<T> result) {
  if (result) FAIL("it was expected to fail");
  return std::move(result).error();
}

// The tests' own op `twice`: compiled in a moment.
inline std::filesystem::path twice_templates() {
  return std::filesystem::path(TUNERD_SOURCE_DIR) / "tests/integration/templates";
}
inline DaemonOptions with_twice(std::vector<std::string> flags = {}) {
  DaemonOptions options;
  options.flags = std::move(flags);
  options.templates = {twice_templates()};
  return options;
}
inline Json twice(std::int64_t rows, std::int64_t cols) { return {{"rows", rows}, {"cols", cols}, {"dtype", "fp32"}}; }
inline Json twice_problem(std::int64_t rows, std::int64_t cols) {
  Json out = twice(rows, cols);
  out["op"] = "twice";
  return out;
}
inline Result<Reply> get_twice(Client& client, std::int64_t rows, std::int64_t cols, const std::string& wait = "now",
                               bool tune = false) {
  Json fields = get_fields("twice", twice(rows, cols), wait);
  fields["tune"] = tune;
  return client.call("get", std::move(fields));
}
inline Result<Reply> tune_twice(Client& client, std::int64_t rows, std::int64_t cols) {
  return client.call("tune", {{"problem", twice_problem(rows, cols)}, {"wait_ms", 60'000}});
}
inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace tunerd::test
