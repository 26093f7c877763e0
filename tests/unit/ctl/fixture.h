// Running tunerctl in this process with its output caught, over a small template folder of the tests' own.
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "ctl/command.h"
#include "model/json_reader.h"

namespace tunerd::ctl::test {

namespace fs = std::filesystem;

template <class T>
T must(Result<T> result) {
  if (!result) FAIL(result.error().text());
  return std::move(result).value();
}
inline void must(const Status& status) {
  if (!status) FAIL(status.error().text());
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "tunerd-ctl-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

inline void write_text(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
}
inline std::string read_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Ran {
  int code = -1;
  std::string out, err;
  Json json() const {
    Json parsed = Json::parse(out, nullptr, false);
    if (parsed.is_discarded()) FAIL("not JSON: " << out << " " << err);
    return parsed;
  }
};

// stdout and stderr of this process stand in for the program's.
inline Ran tunerctl(std::vector<std::string> words) {
  words.insert(words.begin(), "tunerctl");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::ostringstream out, err;
  std::streambuf* const real_out = std::cout.rdbuf(out.rdbuf());
  std::streambuf* const real_err = std::cerr.rdbuf(err.rdbuf());
  Ran ran;
  ran.code = run_tunerctl(int(words.size()), argv.data());
  std::cout.rdbuf(real_out);
  std::cerr.rdbuf(real_err);
  ran.out = out.str();
  ran.err = err.str();
  return ran;
}

inline constexpr const char* kOpJson = R"({
  "op": "scale", "summary": "y = 2 * x", "dims": [{ "name": "rows" }, { "name": "cols" }], "dtypes": ["fp32"],
  "attributes": { "sign": { "values": ["plus", "minus"], "default": "plus" } },
  "tensors": [
    { "name": "x", "shape": ["rows", "cols"], "dtype": "$dtype", "role": "input" },
    { "name": "y", "shape": ["rows", "cols"], "dtype": "$dtype", "role": "output" } ],
  "flops": "rows*cols", "fused_bytes": "bytes_x + bytes_y", "compute": "fp32",
  "tolerance": { "c": 2.0, "exact": true }, "reference": { "source": "reference.cu", "entry": "scale_reference" } })";
inline constexpr const char* kReference = R"(
extern "C" __global__ void scale_reference(const float* x, double* y, double* err, long long rows, long long cols, long long ld_x) {
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < rows * cols; i += gridDim.x * 256ll) {
    y[i] = 2.0 * double(x[i / cols * ld_x + i % cols]); err[i] = 0;
  }
})";
inline constexpr const char* kManifest = R"({
  "template": "scale_rows", "op": "scale", "source": "scale_rows.cu", "entry": "scale_rows", "arch": { "min": "sm_80" },
  "params": { "threads": [64, 128, 2048] },
  "constraints": [ { "if": "threads <= 1024", "reason": "a block has at most 1024 threads" } ],
  "validity": [ { "if": "cols % 2 == 0", "reason": "cols must be even" } ],
  "arguments": [ { "tensor": "x" }, { "tensor": "y" }, { "scalar": "cols", "type": "i64", "expr": "cols" },
                 { "scalar": "ld_x", "type": "i64", "expr": "ld_x" }, { "scalar": "ld_y", "type": "i64", "expr": "ld_y" } ],
  "launch": { "grid": ["rows", 1, 1], "block": ["threads", 1, 1] } })";
inline constexpr const char* kKernel = R"(
extern "C" __global__ void __launch_bounds__(THREADS, 1)
scale_rows(const float* x, float* y, long long cols, long long ld_x, long long ld_y) {
  for (long long c = threadIdx.x; c < cols; c += THREADS) y[blockIdx.x * ld_y + c] = 2.0f * x[blockIdx.x * ld_x + c];
})";

// A template folder with one op and one template that includes nothing; named by TUNERD_TEMPLATES while it lives.
class Templates {
 public:
  Templates() {
    write_text(folder_.path() / "scale" / "op.json", kOpJson);
    write_text(folder_.path() / "scale" / "reference.cu", kReference);
    write_text(folder_.path() / "scale" / "scale_rows.json", kManifest);
    write_text(folder_.path() / "scale" / "scale_rows.cu", kKernel);
    ::setenv("TUNERD_TEMPLATES", folder_.path().c_str(), 1);
    ::setenv("TUNERD_DEVICES", TUNERD_SOURCE_DIR "/config/devices", 1);
    ::setenv("TUNERD_WORKER", TUNERD_BINARY_DIR "/bin/tuner-worker", 0);
  }
  ~Templates() { ::unsetenv("TUNERD_TEMPLATES"); }
  const fs::path& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

}  // namespace tunerd::ctl::test
