// What these tests say often: unwrapping, sources, compile jobs.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "model/environment.h"
#include "wire/worker.h"

namespace tunerd::test {

template <class T>
T must(Result<T> result) {
  if (!result) FAIL(result.error().text());
  return std::move(result).value();
}
inline void must(const Status& status) {
  if (!status) FAIL(status.error().text());
}
template <class T>
Error must_fail(const Result<T>& result) {
  if (result) FAIL("it was expected to fail");
  return result.error();
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// A kernel with a pointer, a 32-bit and a 64-bit parameter, and a float.
inline const char* const kScale = R"(
extern "C" __global__ void scale(float* y, int n, long long ld, float factor) {
  __shared__ float tile[128];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x % 128] = i < n ? y[i * ld] : 0.0f;
  __syncthreads();
  if (i < n) y[i * ld] = factor * tile[127 - threadIdx.x % 128];
}
)";

// Two to the fortieth instantiations: no compiler ends this.
inline const char* const kEndless = R"(
template <int Depth, long long Path> struct Tree {
  static constexpr long long value = Tree<Depth - 1, 2 * Path>::value + Tree<Depth - 1, 2 * Path + 1>::value;
};
template <long long Path> struct Tree<0, Path> { static constexpr long long value = Path; };
extern "C" __global__ void endless(float* y) { y[0] = (float)Tree<40, 1>::value; }
)";

inline wire::CompileJob compile_job(const std::string& source, const std::string& entry,
                                    const std::string& arch = "sm_80") {
  static std::uint64_t next_id = 1;
  wire::CompileJob job;
  job.id = next_id++;
  job.name = entry;
  job.source_name = entry + ".cu";
  job.source = source;
  job.options = fixed_nvrtc_options();
  job.arch = arch;
  job.entry = entry;
  return job;
}

inline Expr expr(const char* text) { return must(Expr::parse(text)); }

inline Argument tensor_argument(const std::string& name) {
  Argument argument;
  argument.name = name;
  return argument;
}

inline Argument scalar_argument(const std::string& name, const std::string& type) {
  Argument argument;
  argument.kind = Argument::Kind::scalar;
  argument.name = name;
  argument.type = type;
  if (type == "f32")
    argument.real = name;
  else
    argument.expr = expr(name.c_str());
  return argument;
}

}  // namespace tunerd::test
