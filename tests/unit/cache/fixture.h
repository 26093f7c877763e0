// Folders, contexts and rows for the tests of the cache.
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "cache/bundle.h"
#include "cache/store.h"
#include "model/digest.h"

namespace tunerd::cache::test {

namespace fs = std::filesystem;

// A private folder, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "tunerd-cache-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::permissions(path_, fs::perms::owner_all, ignored);
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

inline OpenOptions in(const fs::path& folder) {
  OpenOptions options;
  options.folder = folder;
  return options;
}

template <class T>
T must(Result<T> result) {
  if (!result) FAIL(result.error().text());
  return std::move(result).value();
}
inline void must(const Status& status) {
  if (!status) FAIL(status.error().text());
}
inline Store must_open(const OpenOptions& options) { return must(Store::open(options)); }

inline Context h200() {
  return {{"sm_90a", "cuda", 132, 4800, "none", 700}, {"13.0", "580.65.06", "-std=c++17", kMeasurementProtocol}};
}

inline Problem gemm(std::int64_t m, std::int64_t n = 4096, std::int64_t k = 4096) {
  Problem problem;
  problem.op = "gemm";
  problem.dims = {{"m", m}, {"n", n}, {"k", k}};
  problem.attributes = {{"epilogue", "none"}};
  return problem;
}

inline std::string key_of(const Problem& problem) {
  std::string key = problem.op + "{";
  for (const auto& [name, value] : problem.dims) key += name + "=" + std::to_string(value) + ",";
  return key + "dtype=bf16}";
}

inline Artifact kernel(const std::string& name, std::size_t bytes = 4000) {
  Artifact artifact;
  artifact.kernel_key = sha256_hex(name);
  while (artifact.cubin.size() < bytes) artifact.cubin += sha256_hex(name + std::to_string(artifact.cubin.size()));
  artifact.digest = sha256_hex(artifact.cubin);
  artifact.entry = "gemm_mma";
  artifact.arch = "sm_90a";
  artifact.nvrtc = "13.0";
  artifact.variant = "gemm_mma{bk=32,bm=128}";
  artifact.registers = 128;
  artifact.spill_bytes = 1;
  artifact.stack_bytes = 2;
  artifact.static_smem_bytes = 3;
  artifact.compile_ms = 310.5;
  artifact.log = "ptxas info";
  return artifact;
}

inline Winner winner_of(const Problem& problem, const Artifact& artifact, double time_us = 12.5) {
  Winner winner;
  winner.problem = problem;
  winner.problem_key = key_of(problem);
  winner.variant = artifact.variant;
  winner.template_digest = sha256_hex("gemm_mma.cu");
  winner.kernel_key = artifact.kernel_key;
  winner.kernel_digest = artifact.digest;
  winner.measured = true;
  winner.time_us = time_us;
  winner.t_sol_us = 10.25;
  winner.sol_fraction = 10.25 / time_us;
  winner.recipe = {{"entry", "gemm_mma"}, {"launch", {{"grid", {"m", 128, "ceildiv"}}}}};
  return winner;
}

inline Sample sample_of(const Winner& winner, double median_us = 12.5) {
  Sample sample;
  sample.variant = winner.variant;
  sample.template_digest = winner.template_digest;
  sample.median_us = median_us;
  sample.samples_us = {median_us, median_us + 0.125, median_us - 0.125};
  sample.status = "ok";
  sample.gates = Json::array({{{"gate", "exact"}, {"passed", true}}});
  sample.device_before = {{"sm_clock_mhz", 1980}};
  sample.device_after = {{"sm_clock_mhz", 1965}};
  sample.launches_per_replay = 32;
  sample.copies = 4;
  sample.launch_floor_us = 1.5;
  return sample;
}

// One tuned problem: kernel, sample, winner.
inline void tune(Store& store, const Context& context, const Problem& problem, const std::string& name = "a",
                 double time_us = 12.5) {
  const Artifact artifact = kernel(name);
  const Winner winner = winner_of(problem, artifact, time_us);
  must(store.put_artifact(artifact));
  must(store.add_sample(context, problem, winner.problem_key, sample_of(winner, time_us)));
  must(store.put_winner(context, winner));
}

inline std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void write_bytes(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc).write(bytes.data(), std::streamsize(bytes.size()));
}

}  // namespace tunerd::cache::test
