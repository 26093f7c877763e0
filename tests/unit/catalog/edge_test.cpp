#include <algorithm>

#include "template_folder.h"

using namespace tunerd;
using namespace tunerd::testing;

namespace {

struct Fixture {
  OpSpec op = parsed_gemm();

  std::vector<Problem> edges(const Json& manifest, const char* text, const Problem& problem) const {
    const Manifest parsed = must(parse_manifest(manifest, op, "t.json"));
    const KernelSpec kernel = must(instantiate(parsed, op, variant(text), problem, h200()));
    const std::vector<Problem> found = must(edge_problems(parsed, op, kernel, problem, h200()));
    for (const Problem& edge : found) {
      CAPTURE(edge.key(op));
      const Symbols symbols = must(problem_symbols(op, edge));
      must(concrete_launch(kernel.recipe, symbols));
      CHECK(edge.family() == problem.family());
      CHECK(edge.key(op) != problem.key(op));
      for (const TensorSpec& tensor : op.tensors) {
        if (is_present(tensor, edge)) CHECK(must(tensor_span_elements(tensor, symbols)) <= 1 << 22);
      }
    }
    return found;
  }

  static bool has(const std::vector<Problem>& problems, std::int64_t m, std::int64_t n, std::int64_t k) {
    return std::any_of(problems.begin(), problems.end(), [&](const Problem& problem) {
      return problem.dims.at("m") == m && problem.dims.at("n") == n && problem.dims.at("k") == k;
    });
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "edges lie below, above and past the tile, and at one, at the granularity") {
  const auto found = edges(gemm_mma(), "gemm_mma{bk=32,bm=128,bn=64,stages=3,wm=64,wn=64}", gemm(op, 512, 512, 512));
  CHECK(has(found, 127, 63, 24));
  CHECK(has(found, 129, 65, 40));
  CHECK(has(found, 257, 129, 72));
  CHECK(has(found, 1, 1, 8));
  CHECK(found.size() <= 6);
}

TEST_CASE_FIXTURE(Fixture, "the last edge pads the rows of every rank-2 tensor and stays valid") {
  const auto found = edges(gemm_mma(), "gemm_mma{bk=32,bm=128,bn=64,stages=3,wm=64,wn=64}", gemm(op, 512, 512, 512));
  REQUIRE_FALSE(found.empty());
  const Problem& padded = found.back();
  REQUIRE(padded.strides.size() == 3);
  CHECK(padded.strides.at("ld_x") > padded.dims.at("k"));
  CHECK(padded.strides.at("ld_x") % 8 == 0);
  CHECK(padded.strides.at("ld_w") > padded.dims.at("k"));
  CHECK(padded.strides.at("ld_y") > padded.dims.at("n"));
  CHECK(std::count_if(found.begin(), found.end(), [](const Problem& p) { return !p.strides.empty(); }) == 1);
}

TEST_CASE_FIXTURE(Fixture, "edges are distinct") {
  auto found = edges(gemm_simple(), "gemm_simple{}", gemm(op, 7, 7, 7));
  std::vector<std::string> keys;
  for (const Problem& problem : found) keys.push_back(problem.key(op));
  std::sort(keys.begin(), keys.end());
  CHECK(std::adjacent_find(keys.begin(), keys.end()) == keys.end());
  CHECK(found.size() >= 4);
}

TEST_CASE_FIXTURE(Fixture, "a huge problem has small edges") {
  const auto found = edges(gemm_simple(), "gemm_simple{}", gemm(op, 1 << 20, 4096, 8192, "bias"));
  CHECK(found.size() >= 4);
}

TEST_CASE_FIXTURE(Fixture, "a variant valid for one row length only is tried with that length") {
  Json manifest = gemm_mma();
  manifest["tile"].erase("k");
  manifest["granularity"].erase("k");
  manifest["validity"].push_back({{"if", "k == 512"}, {"reason", "a row is held in registers"}});
  const auto found = edges(manifest, "gemm_mma{bk=32,bm=64,bn=64,stages=3,wm=64,wn=64}", gemm(op, 100, 100, 512));
  CHECK(has(found, 63, 63, 512));
  CHECK(has(found, 129, 129, 512));
  REQUIRE_FALSE(found.empty());
  CHECK_FALSE(found.back().strides.empty());
}

TEST_CASE_FIXTURE(Fixture, "without any padding that is valid there is no padded edge") {
  Json manifest = gemm_simple();
  manifest["fallback"] = false;
  manifest["validity"] = {{{"if", "ld_x == k"}, {"reason", "dense rows"}}};
  const auto found = edges(manifest, "gemm_simple{}", gemm(op, 64, 64, 64));
  CHECK_FALSE(found.empty());
  CHECK(std::all_of(found.begin(), found.end(), [](const Problem& p) { return p.strides.empty(); }));
}

TEST_CASE_FIXTURE(Fixture, "the problem's own padding is not taken for an edge") {
  Problem problem = gemm(op, 512, 512, 512);
  problem.strides["ld_x"] = 1024;
  const auto found = edges(gemm_mma(), "gemm_mma{bk=32,bm=128,bn=64,stages=3,wm=64,wn=64}", problem);
  CHECK(std::count_if(found.begin(), found.end(), [](const Problem& p) { return p.strides.empty(); }) >= 4);
}
