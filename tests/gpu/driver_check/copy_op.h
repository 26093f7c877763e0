// An op of these checks' own, y = x, and kernels for it that do what their name says.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "gpu/nvrtc.h"
#include "model/environment.h"
#include "model/problem.h"

namespace tunerd::test {

template <class T>
T must(Result<T> result) {
  if (!result) FAIL(result.error().text());
  return std::move(result).value();
}
inline void must(const Status& status) {
  if (!status) FAIL(status.error().text());
}
inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// `body` runs once a row with `row`, `cols`, pointers to its first elements `in` and `out`, and the whole x, y, w.
std::string copy_kernel(const std::string& body);
inline const char* const kCopyBody = "for (long long i = threadIdx.x; i < cols; i += blockDim.x) out[i] = in[i];";

// A job that verifies and times the kernel on rows × cols floats, with the edges one off and padded.
// `workspace_bytes` 0: the kernel's w is null.
struct CopyJob {
  std::string body = kCopyBody;
  std::int64_t rows = 300, cols = 1000;
  std::int64_t workspace_bytes = 4096;
  std::string workspace_init = "none";
  bool time = false;
  std::function<void(Recipe&)> change = [](Recipe&) {};
};
wire::MeasureJob measure_job(const gpu::Compiler& compiler, const std::string& arch, const CopyJob& what);

}  // namespace tunerd::test
