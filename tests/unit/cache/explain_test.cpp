#include <algorithm>

#include "fixture.h"

using namespace tunerd;
using namespace tunerd::cache;
using namespace tunerd::cache::test;

namespace {

std::string current_digest(const std::string& name) { return name == "gemm_mma" ? sha256_hex("gemm_mma.cu") : ""; }

// The fields that differ, "there -> here".
std::vector<std::string> told(Store& store, const Context& context, const Problem& problem) {
  const Explanation explanation = must(store.explain(context, problem, key_of(problem), current_digest));
  std::vector<std::string> out;
  for (const auto& difference : explanation.differences) {
    out.push_back(difference.field + ": " + difference.there + " -> " + difference.here);
  }
  CHECK(explanation.hit == out.empty());
  return out;
}

}  // namespace

TEST_CASE("explain says a hit is a hit") {
  TemporaryFolder folder;
  Store store = must_open(in(folder.path()));
  tune(store, h200(), gemm(16));
  const Explanation explanation = must(store.explain(h200(), gemm(16), key_of(gemm(16)), current_digest));
  CHECK(explanation.hit);
  CHECK(explanation.nearest_key == key_of(gemm(16)));
  CHECK(explanation.differences.empty());
}

TEST_CASE("explain names every field that differs, with both values") {
  TemporaryFolder folder;
  Store store = must_open(in(folder.path()));
  tune(store, h200(), gemm(16));
  const auto with_context = [&](auto change) {
    Context context = h200();
    change(context);
    return told(store, context, gemm(16));
  };
  using List = std::vector<std::string>;
  CHECK(with_context([](Context& c) { c.device_class.arch = "sm_80"; }) == List{"device_class.arch: sm_90a -> sm_80"});
  CHECK(with_context([](Context& c) { c.device_class.kind = "offline"; }) ==
        List{"device_class.kind: cuda -> offline"});
  CHECK(with_context([](Context& c) { c.device_class.sm_count = 66; }) == List{"device_class.sm_count: 132 -> 66"});
  CHECK(with_context([](Context& c) { c.device_class.memory_gb_per_s = 1; }) ==
        List{"device_class.memory_gb_per_s: 4800 -> 1"});
  CHECK(with_context([](Context& c) { c.device_class.mig = "1g"; }) == List{"device_class.mig: none -> 1g"});
  CHECK(with_context([](Context& c) { c.device_class.power_cap_w = 600; }) ==
        List{"device_class.power_cap_w: 700 -> 600"});
  CHECK(with_context([](Context& c) { c.environment.nvrtc = "12.9"; }) == List{"environment.nvrtc: 13.0 -> 12.9"});
  CHECK(with_context([](Context& c) { c.environment.driver = "1"; }) == List{"environment.driver: 580.65.06 -> 1"});
  CHECK(with_context([](Context& c) { c.environment.flags = "-x"; }) == List{"environment.flags: -std=c++17 -> -x"});
  CHECK(with_context([](Context& c) { c.environment.measurement_protocol = 9; }).size() == 1);

  const auto with_problem = [&](auto change) {
    Problem problem = gemm(16);
    change(problem);
    return told(store, h200(), problem);
  };
  CHECK(with_problem([](Problem& p) { p.dtype = DType::fp16; }) == List{"dtype: bf16 -> fp16"});
  CHECK(with_problem([](Problem& p) { p.attributes["epilogue"] = "bias"; }) == List{"epilogue: none -> bias"});
  CHECK(with_problem([](Problem& p) { p.dims["m"] = 17; }) == List{"m: 16 -> 17"});
  CHECK(with_problem([](Problem& p) { p.strides["ld_x"] = 5000; }) == List{"ld_x: (dense) -> 5000"});
  CHECK(with_problem([](Problem& p) { p.allow_nondeterministic = true; }) ==
        List{"allow_nondeterministic: false -> true"});
  CHECK(with_problem([](Problem& p) {
          p.dims["m"] = 17;
          p.dims["n"] = 8;
        }) == List{"m: 16 -> 17", "n: 4096 -> 8"});
}

TEST_CASE("explain names a template that changed or is gone") {
  TemporaryFolder folder;
  Store store = must_open(in(folder.path()));
  tune(store, h200(), gemm(16));
  const auto changed =
      must(store.explain(h200(), gemm(16), key_of(gemm(16)), [](const std::string&) { return "new"; }));
  REQUIRE(changed.differences.size() == 1);
  CHECK_FALSE(changed.hit);
  CHECK(changed.differences[0].field == "template_digest");
  CHECK(changed.differences[0].here == "new");
  const auto gone = must(store.explain(h200(), gemm(16), key_of(gemm(16)), [](const std::string&) { return ""; }));
  REQUIRE(gone.differences.size() == 1);
  CHECK(gone.differences[0].here == "(no template gemm_mma)");
}

TEST_CASE("explain compares with the stored winner that differs in the fewest fields, then with the nearest size") {
  TemporaryFolder folder;
  Store store = must_open(in(folder.path()));
  tune(store, h200(), gemm(16, 1024, 1024));
  tune(store, h200(), gemm(1024));
  tune(store, h200(), gemm(64));
  const Explanation explanation = must(store.explain(h200(), gemm(48), key_of(gemm(48)), current_digest));
  CHECK(explanation.nearest_key == key_of(gemm(64)));
  REQUIRE(explanation.differences.size() == 1);
  CHECK(explanation.differences[0].field == "m");
}

TEST_CASE("explain of an op with nothing stored has no nearest key") {
  TemporaryFolder folder;
  Store store = must_open(in(folder.path()));
  tune(store, h200(), gemm(16));
  Problem norm;
  norm.op = "rmsnorm";
  const Explanation explanation = must(store.explain(h200(), norm, "rmsnorm{}", current_digest));
  CHECK_FALSE(explanation.hit);
  CHECK(explanation.nearest_key.empty());
  CHECK(explanation.differences.empty());
}
