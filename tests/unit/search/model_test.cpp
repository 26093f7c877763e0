#include "search/model.h"

#include "../catalog/template_folder.h"

using namespace tunerd;
using namespace tunerd::testing;

namespace {

struct Fixture {
  OpSpec op = parsed_gemm();

  Result<double> predict(const Json& json, const std::string& text, const Problem& problem,
                         const DeviceSpec& device = h200()) const {
    const Manifest manifest = must(parse_manifest(json, op, "t.json"));
    const KernelSpec kernel = must(instantiate(manifest, op, variant(text), problem, device));
    return predict_us(manifest, op, kernel, problem, device);
  }
  double us(const Json& json, const std::string& text, const Problem& problem,
            const DeviceSpec& device = h200()) const {
    return must(predict(json, text, problem, device));
  }
};

constexpr const char* kBig = "gemm_mma{bk=32,bm=128,bn=128,stages=3,wm=64,wn=64}";
constexpr const char* kSmall = "gemm_mma{bk=32,bm=64,bn=64,stages=3,wm=32,wn=32}";

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a compute-bound time is the work of the fullest SM, waves rounded up") {
  Json json = gemm_mma();
  json["cost"] = {{"tiles", "ceildiv(m,bm)*ceildiv(n,bn)"}, {"tile_flops", "2*bm*bn*k"}, {"efficiency_permille", 500}};
  const Problem problem = gemm(op, 4096, 4096, 4096);
  // 1024 tiles over 132 SMs: the fullest does 8.
  const double expected = 2.0 + 8 * 2.0 * 128 * 128 * 4096 / (989e12 / 132 * 0.5) * 1e6;
  CHECK(us(json, kBig, problem) == doctest::Approx(expected));
}

TEST_CASE_FIXTURE(Fixture, "a memory-bound time is bytes over what can be reached of the bandwidth") {
  Json json = gemm_simple();
  json["cost"] = {{"tiles", 132 * 8}, {"tile_flops", 1}, {"dram_bytes", 4'800'000'000}, {"efficiency_permille", 1000}};
  CHECK(us(json, "gemm_simple{}", gemm(op, 64, 64, 64)) == doctest::Approx(2.0 + 1e-3 / 0.9 * 1e6));
}

TEST_CASE_FIXTURE(Fixture, "a few blocks do not reach the bandwidth that many do") {
  Json json = gemm_simple();
  json["cost"] = {{"tiles", 8}, {"tile_flops", 1}, {"dram_bytes", 4'800'000'000}, {"efficiency_permille", 1000}};
  const double few = us(json, "gemm_simple{}", gemm(op, 64, 64, 64));
  json["cost"]["tiles"] = 132 * 8;
  CHECK(few > 10 * us(json, "gemm_simple{}", gemm(op, 64, 64, 64)));
}

TEST_CASE_FIXTURE(Fixture, "steps that wait for each other add their latency, wave by wave") {
  Json json = gemm_mma();
  json["cost"]["step_latency_ns"] = 0;
  const Problem problem = gemm(op, 128, 128, 4096);
  const double without = us(json, kBig, problem);
  json["cost"]["step_latency_ns"] = 100;
  CHECK(us(json, kBig, problem) - without == doctest::Approx(128 * 0.1));
}

TEST_CASE_FIXTURE(Fixture, "large tiles win where there are many, small ones where there are few") {
  CHECK(us(gemm_mma(), kBig, gemm(op, 8192, 8192, 8192)) < us(gemm_mma(), kSmall, gemm(op, 8192, 8192, 8192)));
  CHECK(us(gemm_mma(), kSmall, gemm(op, 256, 1024, 8192)) < us(gemm_mma(), kBig, gemm(op, 256, 1024, 8192)));
}

TEST_CASE_FIXTURE(Fixture, "a template without a cost is ranked by the op's own flops and bytes") {
  Json json = gemm_mma();
  json.erase("cost");
  const double small = us(json, kBig, gemm(op, 1024, 1024, 1024));
  CHECK(small > 2.0);
  CHECK(us(json, kBig, gemm(op, 8192, 8192, 8192)) > 10 * small);
}

TEST_CASE_FIXTURE(Fixture, "cost may use the tensors' bytes") {
  Json json = gemm_mma();
  json["cost"]["dram_bytes"] = "bytes_x*1000";
  CHECK(us(json, kBig, gemm(op, 4096, 4096, 4096)) > us(gemm_mma(), kBig, gemm(op, 4096, 4096, 4096)));
}

TEST_CASE_FIXTURE(Fixture, "a cost that makes no sense is an error that names its part") {
  const auto field = [&](const char* part, const Json& value) {
    Json json = gemm_mma();
    json["cost"][part] = value;
    const Result<double> predicted = predict(json, kBig, gemm(op, 512, 512, 512));
    REQUIRE_FALSE(predicted.has_value());
    return predicted.error().field;
  };
  CHECK(field("efficiency_permille", 0) == "gemm_mma.cost.efficiency_permille");
  CHECK(field("efficiency_permille", 1001) == "gemm_mma.cost.efficiency_permille");
  CHECK(field("tiles", "m - 513") == "gemm_mma.cost.tiles");
  CHECK(field("tile_bytes", "m / (bm - 128)") == "gemm_mma.cost.tile_bytes");
  CHECK(field("tile_flops", "m*n*k*m*n*k*m*n*k") == "gemm_mma.cost.tile_flops");
}

TEST_CASE_FIXTURE(Fixture, "a device without a peak for the dtype is an error, not a guess") {
  DeviceSpec device = h200();
  device.peak_flops.erase("bf16");
  CHECK_FALSE(predict(gemm_mma(), kBig, gemm(op, 512, 512, 512), device).has_value());
}
