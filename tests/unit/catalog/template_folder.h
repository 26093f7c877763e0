// A private template folder: one gemm op with four templates, small enough to read and real enough to rank.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "model/catalog.h"

namespace tunerd::testing {

namespace fs = std::filesystem;

// A folder of its own below the temporary directory, gone with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "tunerd-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = fs::canonical(name);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const fs::path& path() const { return path_; }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream file(path_ / name, std::ios::binary);
    file << text;
    REQUIRE(file.good());
  }
  void write_json(const std::string& name, const Json& json) const { write(name, json.dump(2)); }

 private:
  fs::path path_;
};

template <class T>
const T& must(const Result<T>& result) {
  if (!result) FAIL(result.error().text());
  return *result;
}
inline void must(const Status& status) {
  if (!status) FAIL(status.error().text());
}

inline Json gemm_op() {
  return Json::parse(R"json({
    "op": "gemm",
    "summary": "y = epilogue(x · wᵀ)",
    "dims": [{ "name": "m" }, { "name": "n" }, { "name": "k" }],
    "dtypes": ["bf16", "fp16"],
    "attributes": {
      "epilogue": { "values": ["none", "bias", "gelu"], "default": "none" },
      "scale": { "real": true, "default": 0.5 }
    },
    "tensors": [
      { "name": "x", "shape": ["m", "k"], "dtype": "$dtype", "role": "input" },
      { "name": "w", "shape": ["n", "k"], "dtype": "$dtype", "role": "input" },
      { "name": "bias", "shape": ["n"], "dtype": "$dtype", "role": "input", "when": { "epilogue": ["bias"] } },
      { "name": "y", "shape": ["m", "n"], "dtype": "$dtype", "role": "output" }
    ],
    "flops": "2*m*n*k",
    "fused_bytes": "bytes_x + bytes_w + bytes_bias + bytes_y",
    "compute": "tensor",
    "tolerance": { "c": 2.0, "exact": true, "exact_when": { "epilogue": ["none", "bias"] } },
    "reference": { "source": "reference.cu", "entry": "gemm_reference" }
  })json");
}

inline Json gemm_mma() {
  return Json::parse(R"json({
    "//": "derived values in no order: smem needs stage_bytes, which sorts after it",
    "template": "gemm_mma", "op": "gemm", "source": "gemm_mma.cu", "entry": "gemm_mma",
    "arch": { "min": "sm_80" },
    "params": { "bm": [64, 128], "bn": [64, 128, 256], "bk": [32, 64], "stages": [2, 3, 4], "wm": [32, 64], "wn": [32, 64] },
    "derived": {
      "smem": "stages*stage_bytes",
      "stage_bytes": "(bm+bn)*bk*dtype_bytes",
      "threads": { "expr": "(bm/wm)*(bn/wn)*32", "define": true }
    },
    "constraints": [
      { "if": "bm % wm == 0 && bn % wn == 0", "reason": "warp tiles must divide the block tile" },
      { "if": "smem <= smem_per_block_bytes", "reason": "stages do not fit in shared memory" }
    ],
    "validity": [ { "if": "k % 8 == 0 && ld_x % 8 == 0 && ld_w % 8 == 0", "reason": "rows must be multiples of 16 bytes" } ],
    "align_bytes": { "bias": 2, "y": 4 },
    "arguments": [
      { "tensor": "x" }, { "tensor": "w" }, { "tensor": "bias" }, { "tensor": "y" },
      { "scalar": "m", "type": "i64", "expr": "m" }, { "scalar": "n", "type": "i64", "expr": "n" },
      { "scalar": "k", "type": "i64", "expr": "k" },
      { "scalar": "ld_x", "type": "i64", "expr": "ld_x" }, { "scalar": "ld_w", "type": "i64", "expr": "ld_w" },
      { "scalar": "ld_y", "type": "i64", "expr": "ld_y" },
      { "scalar": "scale", "type": "f32", "real": "scale" }
    ],
    "launch": { "grid": ["ceildiv(m,bm)*ceildiv(n,bn)", 1, 1], "block": ["threads", 1, 1], "dynamic_smem_bytes": "smem" },
    "tile": { "m": "bm", "n": "bn", "k": "bk" },
    "granularity": { "k": 8 },
    "cost": {
      "tiles": "ceildiv(m,bm)*ceildiv(n,bn)", "tile_flops": "2*bm*bn*k", "tile_bytes": "(bm+bn)*k*dtype_bytes",
      "serial_steps": "ceildiv(k,bk)", "step_latency_ns": 60, "efficiency_permille": 600
    }
  })json");
}

inline Json gemm_tma() {
  return Json::parse(R"json({
    "template": "gemm_tma", "op": "gemm", "source": "gemm_tma.cu", "entry": "gemm_tma",
    "arch": { "only": ["sm_90a"] }, "dtypes": ["bf16"], "attributes": { "epilogue": ["none", "bias"] },
    "params": { "bm": [64, 128], "bn": [128, 256], "bk": [32, 64], "cluster_m": [1, 2] },
    "derived": { "smem": "3*(bm+bn)*bk*dtype_bytes" },
    "validity": [ { "if": "ld_x*dtype_bytes % 16 == 0", "reason": "tensor maps need strides of 16 bytes" } ],
    "arguments": [
      { "tensor_map": "x", "dims": ["k", "m"], "strides_bytes": ["ld_x*dtype_bytes"], "box": ["bk", "bm"],
        "swizzle_by_inner_bytes": { "64": "64B", "128": "128B" }, "l2_promotion": "256B" },
      { "tensor_map": "bias", "dims": ["n"], "strides_bytes": [], "box": ["bn"] },
      { "tensor": "w" }, { "tensor": "y" },
      { "workspace": "ceildiv(m,bm)*4*sm_count", "align_bytes": 128, "init": "zero_once" }
    ],
    "launch": { "grid": ["ceildiv(m,bm*cluster_m)*cluster_m", "ceildiv(n,bn)"], "block": [384],
                "cluster": ["cluster_m"], "dynamic_smem_bytes": "smem", "pdl": true },
    "tile": { "m": "bm", "n": "bn" }
  })json");
}

inline Json gemm_split() {
  return Json::parse(R"json({
    "template": "gemm_split", "op": "gemm", "source": "gemm_mma.cu", "entry": "gemm_split",
    "params": { "splits": [1, 4] },
    "deterministic": { "if": "splits == 1", "reason": "atomic accumulation" },
    "arguments": [ { "tensor": "x" }, { "tensor": "w" }, { "tensor": "y" }, { "workspace": "splits*m*n*4" } ],
    "launch": { "grid": ["m", "min(n, 65535)", "splits"], "block": [128] },
    "cost": { "efficiency_permille": 20 }
  })json");
}

inline Json gemm_simple() {
  return Json::parse(R"json({
    "template": "gemm_simple", "op": "gemm", "source": "gemm_simple.cu", "entry": "gemm_simple",
    "arguments": [ { "tensor": "x" }, { "tensor": "w" }, { "tensor": "bias" }, { "tensor": "y" },
                   { "scalar": "m", "type": "i64", "expr": "m" } ],
    "launch": { "grid": ["min(ceildiv(m*n, 256), 1048576)"], "block": [256] },
    "cost": { "efficiency_permille": 5 },
    "fallback": true
  })json");
}

inline void write_gemm(const TemporaryFolder& folder) {
  folder.write("device/mma.cuh", "#include \"device/types.cuh\"\n");
  folder.write("device/types.cuh", "struct bf16 { unsigned short bits; };\n");
  folder.write_json("gemm/op.json", gemm_op());
  folder.write("gemm/reference.cu", "extern \"C\" __global__ void gemm_reference() {}\n");
  folder.write("gemm/gemm_mma.cu", "#include \"device/mma.cuh\"\nextern \"C\" __global__ void gemm_mma() {}\n");
  folder.write("gemm/gemm_tma.cu", "extern \"C\" __global__ void gemm_tma() {}\n");
  folder.write("gemm/gemm_simple.cu", "extern \"C\" __global__ void gemm_simple() {}\n");
  folder.write_json("gemm/gemm_mma.json", gemm_mma());
  folder.write_json("gemm/gemm_tma.json", gemm_tma());
  folder.write_json("gemm/gemm_split.json", gemm_split());
  folder.write_json("gemm/gemm_simple.json", gemm_simple());
}

// An H200 by its datasheet; `arch` may be another's to test what that one cannot do.
inline DeviceSpec h200(const std::string& arch = "sm_90a", int cc = 90) {
  DeviceSpec device;
  device.name = "h200-sxm";
  device.arch = arch;
  device.cc = cc;
  device.sm_count = 132;
  device.l2_bytes = 50 << 20;
  device.smem_per_block_bytes = 232448;
  device.smem_per_sm_bytes = 233472;
  device.memory_bytes_per_s = 4.8e12;
  device.boost_clock_hz = 1.98e9;
  device.peak_flops = {{"bf16", 989e12}, {"fp16", 989e12}, {"fp32", 67e12}};
  device.source = "datasheet";
  return device;
}

inline OpSpec parsed_gemm() { return must(parse_op(gemm_op(), "op.json")); }

inline Problem gemm(const OpSpec& op, std::int64_t m, std::int64_t n, std::int64_t k,
                    const std::string& epilogue = "none", const std::string& dtype = "bf16") {
  return must(make_problem(op, Json{{"m", m}, {"n", n}, {"k", k}, {"dtype", dtype}, {"epilogue", epilogue}}));
}

inline Variant variant(const std::string& text) { return must(Variant::parse(text)); }

}  // namespace tunerd::testing
