// What the model's tests share: unwrapping, a private folder, a gemm op as a template folder would define it.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "model/problem.h"

namespace tunerd::testing {

namespace fs = std::filesystem;

template <class T>
T must(Result<T> result) {
  if (!result) FAIL(result.error().text());
  return std::move(*result);
}
inline void must(const Status& status) {
  if (!status) FAIL(status.error().text());
}
// The error of what has to fail.
template <class T>
Error error_of(const Result<T>& result) {
  if (result) FAIL("expected an error, got a value");
  return result.error();
}

// A folder of its own below the temporary directory, gone with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "tunerd-model-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

inline Json gemm_json() {
  return Json::parse(R"json({
    "op": "gemm",
    "summary": "y = epilogue(x · wᵀ)",
    "dims": [{ "name": "m" }, { "name": "n" }, { "name": "k" }],
    "dtypes": ["bf16", "fp16"],
    "attributes": {
      "epilogue": { "values": ["none", "bias", "residual", "gelu"], "default": "none" },
      "eps": { "real": true, "default": 1e-6 }
    },
    "tensors": [
      { "name": "x", "shape": ["m", "k"], "role": "input" },
      { "name": "w", "shape": ["n", "k"], "role": "input" },
      { "name": "bias", "shape": ["n"], "dtype": "fp32", "role": "input", "when": { "epilogue": ["bias"] } },
      { "name": "residual", "shape": ["m", "n"], "role": "input", "when": { "epilogue": ["residual"] } },
      { "name": "y", "shape": ["m", "n"], "role": "output" }
    ],
    "flops": "2*m*n*k",
    "fused_bytes": "bytes_x + bytes_w + bytes_bias + bytes_residual + bytes_y",
    "compute": "tensor",
    "tolerance": { "c": 2.0, "exact": true, "exact_when": { "epilogue": ["none", "bias"] } },
    "reference": { "source": "reference.cu", "entry": "gemm_reference" }
  })json");
}

inline OpSpec gemm() { return must(parse_op(gemm_json(), "gemm/op.json")); }

}  // namespace tunerd::testing
