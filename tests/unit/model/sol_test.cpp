#include "model/sol.h"

#include "fixture.h"

using namespace tunerd;
using namespace tunerd::testing;

namespace {

DeviceSpec shipped(const char* name) {
  return must(find_device(must(load_devices(fs::path(TUNERD_SOURCE_DIR) / "config/devices")), name));
}

// attention_output_projection: x[16,512,2560] · Wᵀ[2560,2560] + residual[16,512,2560].
const std::vector<std::string> kProjection{"m=8192", "n=2560", "k=2560", "dtype=bf16", "epilogue=residual"};

Sol sol_of(const OpSpec& op, const std::vector<std::string>& words, const DeviceSpec& device) {
  return must(speed_of_light(op, must(make_problem(op, words)), device));
}

}  // namespace

TEST_CASE("the worked example at its own fp32 count is bound by compute at 0.1746 ms") {
  // Its count leaves the weights out: three tensors of m*n fp32 elements. 1.55 TB/s and 615 TFLOP/s are its own too.
  Json json = gemm_json();
  json["fused_bytes"] = "3*m*n*4";
  DeviceSpec device = shipped("a100-sxm-40gb");
  device.memory_bytes_per_s = 1.55e12;
  device.peak_flops["bf16"] = 6.15e14;
  const Sol sol = sol_of(must(parse_op(json, "op.json")), kProjection, device);
  CHECK(sol.flops == 107'374'182'400);
  CHECK(sol.bytes == 251'658'240);
  CHECK(sol.t_memory_us == doctest::Approx(162.4).epsilon(0.0005));
  CHECK(sol.t_compute_us == doctest::Approx(174.6).epsilon(0.0005));
  CHECK(sol.t_sol_us == sol.t_compute_us);
  CHECK(sol.bound == "compute");
}

TEST_CASE("the worked example with every compulsory byte in bf16: 138.9 MB, 108.5 us on an H200") {
  const Sol sol = sol_of(gemm(), kProjection, shipped("h200-sxm"));
  CHECK(sol.flops == 107'374'182'400);
  CHECK(sol.bytes == 2 * (8192 * 2560 + 2560 * 2560 + 8192 * 2560 + 8192 * 2560));
  CHECK(sol.bytes == 138'936'320);
  CHECK(sol.t_compute_us == doctest::Approx(1e6 * 107'374'182'400.0 / 989.4e12));
  CHECK(sol.t_compute_us == doctest::Approx(108.5).epsilon(0.001));
  CHECK(sol.t_memory_us == doctest::Approx(28.95).epsilon(0.001));
  CHECK(sol.t_sol_us == sol.t_compute_us);
  CHECK(sol.bound == "compute");
  CHECK(sol.peaks_source == "datasheet: h200-sxm");
}

TEST_CASE("a skinny gemm is bound by memory: its weights") {
  const Sol sol = sol_of(gemm(), {"m=1", "n=8192", "k=8192"}, shipped("h200-sxm"));
  CHECK(sol.bytes == 2 * (8192 + 8192LL * 8192 + 8192));
  CHECK(sol.bound == "memory");
  CHECK(sol.t_sol_us == doctest::Approx(27.97).epsilon(0.001));
}

TEST_CASE("the tensors that the attributes leave out cost nothing") {
  const DeviceSpec device = shipped("h200-sxm");
  const auto bytes = [&](const char* epilogue) {
    return sol_of(gemm(), {"m=16", "n=32", "k=64", "epilogue=" + std::string(epilogue)}, device).bytes;
  };
  CHECK(bytes("bias") - bytes("none") == 32 * 4);
  CHECK(bytes("residual") - bytes("none") == 16 * 32 * 2);
  CHECK(bytes("gelu") == bytes("none"));
}

TEST_CASE("padding is no compulsory byte") {
  const DeviceSpec device = shipped("h200-sxm");
  CHECK(sol_of(gemm(), {"m=16", "n=32", "k=64", "ld_x=4096"}, device).bytes ==
        sol_of(gemm(), {"m=16", "n=32", "k=64"}, device).bytes);
}

TEST_CASE("an op that computes in fp32 is held to the vector peak") {
  Json json = gemm_json();
  json["compute"] = "fp32";
  CHECK(sol_of(must(parse_op(json, "op.json")), kProjection, shipped("h200-sxm")).peak_flops_per_s == 67e12);
}

TEST_CASE("a dtype that the device has no peak for is an error that names those it has") {
  const OpSpec op = gemm();
  const Error error = error_of(speed_of_light(op, must(make_problem(op, kProjection)), shipped("t4")));
  CHECK(error.message == "Device t4 has no peak for bf16");
  CHECK(error.field == "dtype");
  CHECK(error.value == "bf16");
  CHECK(error.expected == "one of fp16, fp32, int8");
  CHECK(error.suggestion == "fp16");
}

TEST_CASE("a cost that overflows or comes out negative is an error that names it") {
  const OpSpec op = gemm();
  const std::vector<std::string> huge{"m=2147483648", "n=1073741824", "k=1073741824"};
  const Error overflow = error_of(speed_of_light(op, must(make_problem(op, huge)), shipped("h200-sxm")));
  CHECK(overflow.field == "flops");
  CHECK(overflow.message == "Cannot compute flops of op gemm: Overflow");
  Json json = gemm_json();
  json["fused_bytes"] = "m - n";
  const OpSpec negative = must(parse_op(json, "op.json"));
  const std::vector<std::string> words{"m=1", "n=2", "k=1"};
  CHECK(error_of(speed_of_light(negative, must(make_problem(negative, words)), shipped("h200-sxm"))).field ==
        "fused_bytes");
}

TEST_CASE("a device made by hand without a bandwidth gives an error, not an infinite time") {
  DeviceSpec device;
  device.name = "by-hand";
  device.peak_flops["bf16"] = 1e12;
  const OpSpec op = gemm();
  CHECK(error_of(speed_of_light(op, must(make_problem(op, kProjection)), device)).value == "by-hand");
}

TEST_CASE("the bound as JSON has the keys that scripts read") {
  const Json json = to_json(sol_of(gemm(), kProjection, shipped("h200-sxm")));
  for (const char* key : {"flops", "bytes", "t_compute_us", "t_memory_us", "t_sol_us", "bound", "peak_flops_per_s",
                          "memory_bytes_per_s", "peaks_source"})
    CHECK(json.contains(key));
  CHECK(json.size() == 9);
  CHECK(json["flops"] == 107'374'182'400);
}
