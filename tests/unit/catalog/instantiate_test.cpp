#include <algorithm>

#include "template_folder.h"

using namespace tunerd;
using namespace tunerd::testing;

namespace {

constexpr const char* kMma = "gemm_mma{bk=32,bm=128,bn=128,stages=3,wm=64,wn=64}";
constexpr const char* kTma = "gemm_tma{bk=64,bm=128,bn=256,cluster_m=2}";

struct Fixture {
  OpSpec op = parsed_gemm();

  KernelSpec instance(const Json& manifest, const char* text, const Problem& problem) const {
    const Manifest parsed = must(parse_manifest(manifest, op, "t.json"));
    return must(instantiate(parsed, op, variant(text), problem, h200()));
  }
  Error refused(const Json& manifest, const char* text, const Problem& problem) const {
    const Manifest parsed = must(parse_manifest(manifest, op, "t.json"));
    const Result<KernelSpec> kernel = instantiate(parsed, op, variant(text), problem, h200());
    REQUIRE_FALSE(kernel.has_value());
    return kernel.error();
  }
  Symbols symbols(const Problem& problem) const { return must(problem_symbols(op, problem)); }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "defines are the parameters, the defined values, dtype, attributes and tensors, sorted") {
  const KernelSpec kernel = instance(gemm_mma(), kMma, gemm(op, 512, 512, 512, "bias"));
  CHECK(kernel.defines == std::vector<std::string>{"-DBK=32", "-DBM=128", "-DBN=128", "-DDTYPE_BF16=1",
                                                   "-DEPILOGUE_BIAS=1", "-DHAS_BIAS=1", "-DHAS_W=1", "-DHAS_X=1",
                                                   "-DHAS_Y=1", "-DSTAGES=3", "-DTHREADS=128", "-DWM=64", "-DWN=64"});
  CHECK(kernel.threads == 128);
}

TEST_CASE_FIXTURE(Fixture, "a recipe's expressions range over dimensions and strides only") {
  for (const char* epilogue : {"none", "bias"}) {
    for (const auto& [manifest, text] : {std::pair{gemm_mma(), kMma}, std::pair{gemm_tma(), kTma}}) {
      const Recipe recipe = instance(manifest, text, gemm(op, 512, 512, 512, epilogue)).recipe;
      std::vector<Expr> exprs(recipe.launch.grid.begin(), recipe.launch.grid.end());
      for (const Rule& rule : recipe.checks) exprs.push_back(rule.expr);
      for (const Argument& argument : recipe.arguments) {
        exprs.push_back(argument.expr);
        exprs.insert(exprs.end(), argument.map.dims.begin(), argument.map.dims.end());
        exprs.insert(exprs.end(), argument.map.strides_bytes.begin(), argument.map.strides_bytes.end());
      }
      const std::vector<std::string> allowed{"k", "ld_w", "ld_x", "ld_y", "m", "n"};
      for (const Expr& expr : exprs) {
        for (const std::string& name : expr.names()) {
          CAPTURE(expr.text());
          CHECK(std::find(allowed.begin(), allowed.end(), name) != allowed.end());
        }
      }
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "one recipe launches the kernel for another size") {
  const Recipe recipe = instance(gemm_mma(), kMma, gemm(op, 512, 512, 512)).recipe;
  const ConcreteLaunch small = must(concrete_launch(recipe, symbols(gemm(op, 512, 512, 512))));
  CHECK(small.grid == std::array<std::int64_t, 3>{16, 1, 1});
  CHECK(small.block == std::array<std::int64_t, 3>{128, 1, 1});
  CHECK(small.dynamic_smem_bytes == 49152);
  CHECK(must(concrete_launch(recipe, symbols(gemm(op, 129, 1, 8)))).grid[0] == 2);
}

TEST_CASE_FIXTURE(Fixture, "a launch outside the variant's validity is refused with the reason and the values") {
  const Recipe recipe = instance(gemm_mma(), kMma, gemm(op, 512, 512, 512)).recipe;
  const Result<ConcreteLaunch> launch = concrete_launch(recipe, symbols(gemm(op, 4, 4, 12)));
  REQUIRE_FALSE(launch.has_value());
  CHECK(launch.error().message == "rows must be multiples of 16 bytes (k=12 ld_w=12 ld_x=12)");
  CHECK(launch.error().field == "k,ld_w,ld_x");
}

TEST_CASE_FIXTURE(Fixture, "sizes stay 64-bit: a tensor of more than 2^32 bytes has a recipe and a launch") {
  const Problem problem = gemm(op, 1 << 20, 4096, 8192);
  const Recipe recipe = instance(gemm_mma(), kMma, problem).recipe;
  const Symbols values = symbols(problem);
  REQUIRE(*values.find("bytes_x") == std::int64_t{1} << 34);
  CHECK(must(concrete_launch(recipe, values)).grid[0] == 262144);

  const Recipe split = instance(gemm_split(), "gemm_split{splits=4}", problem).recipe;
  CHECK(must(concrete_launch(split, values)).workspace_bytes == std::int64_t{1} << 36);
  CHECK_FALSE(split.deterministic);
}

TEST_CASE_FIXTURE(Fixture, "a grid past the driver's limits is an error that names the dimension") {
  Json manifest = gemm_simple();
  manifest["launch"]["grid"] = {"m", "n", "k - 1"};
  const Recipe recipe = instance(manifest, "gemm_simple{}", gemm(op, 2, 2, 2)).recipe;
  const auto field = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    const Result<ConcreteLaunch> launch = concrete_launch(recipe, symbols(gemm(op, m, n, k)));
    return launch ? std::string("ok") : launch.error().field;
  };
  CHECK(field(2147483647, 65535, 65536) == "ok");
  CHECK(field(2147483648, 1, 2) == "launch.grid[0]");
  CHECK(field(1, 65536, 2) == "launch.grid[1]");
  CHECK(field(1, 1, 1) == "launch.grid[2]");
  CHECK(field(1, 1, 65537) == "launch.grid[2]");
}

TEST_CASE_FIXTURE(Fixture, "a grid that the cluster does not divide is refused before the driver sees it") {
  Json manifest = gemm_tma();
  manifest["launch"]["grid"] = {"ceildiv(m,bm)", "ceildiv(n,bn)"};
  const Recipe recipe = instance(manifest, kTma, gemm(op, 512, 512, 512)).recipe;
  must(concrete_launch(recipe, symbols(gemm(op, 256, 512, 512))));
  const Result<ConcreteLaunch> launch = concrete_launch(recipe, symbols(gemm(op, 384, 512, 512)));
  REQUIRE_FALSE(launch.has_value());
  CHECK(launch.error().field == "launch.grid[0]");
}

TEST_CASE_FIXTURE(Fixture, "a tensor map is folded to its box, and its swizzle follows the box's bytes") {
  const Recipe recipe = instance(gemm_tma(), kTma, gemm(op, 512, 512, 512)).recipe;
  const Argument& x = recipe.arguments[0];
  REQUIRE(x.kind == Argument::Kind::tensor_map);
  CHECK(x.map.box == std::vector<std::int64_t>{64, 128});
  CHECK(x.map.swizzle == "128B");
  CHECK(x.map.l2_promotion == "256B");
  CHECK(must(x.map.strides_bytes[0].eval(Symbols{{"ld_x", 520}})) == 1040);
  const Recipe narrow =
      instance(gemm_tma(), "gemm_tma{bk=32,bm=128,bn=256,cluster_m=2}", gemm(op, 512, 512, 512)).recipe;
  CHECK(narrow.arguments[0].map.swizzle == "64B");
  CHECK(recipe.launch.cluster == std::array<std::int64_t, 3>{2, 1, 1});
  CHECK(recipe.launch.pdl);
}

TEST_CASE_FIXTURE(Fixture, "a real attribute that was asked for is the launch's default, else the op's is") {
  const auto scale = [this](const Problem& problem) {
    const KernelSpec kernel = instance(gemm_mma(), kMma, problem);
    for (const Argument& argument : kernel.recipe.arguments)
      if (argument.real == "scale") return argument.real_default;
    return -1.0;
  };
  Problem problem = gemm(op, 512, 512, 512);
  CHECK(scale(problem) == op.attribute("scale")->default_real);
  problem.reals["scale"] = 2.5;
  CHECK(scale(problem) == 2.5);
}

TEST_CASE_FIXTURE(Fixture, "a dependent launch is asked for only on devices that know it") {
  Json manifest = gemm_mma();
  manifest["launch"]["pdl"] = true;
  const Manifest parsed = must(parse_manifest(manifest, op, "t.json"));
  const Problem problem = gemm(op, 512, 512, 512);
  CHECK(must(instantiate(parsed, op, variant(kMma), problem, h200())).recipe.launch.pdl);
  CHECK_FALSE(must(instantiate(parsed, op, variant(kMma), problem, h200("sm_80", 80))).recipe.launch.pdl);
}

TEST_CASE_FIXTURE(Fixture, "an absent tensor is a null tensor argument, also where the kernel wants its map") {
  const Recipe without = instance(gemm_tma(), kTma, gemm(op, 512, 512, 512)).recipe;
  CHECK(without.arguments[1].kind == Argument::Kind::tensor);
  CHECK(without.arguments[1].name == "bias");
  CHECK_FALSE(without.tensors[2].present);
  const Recipe with = instance(gemm_tma(), kTma, gemm(op, 512, 512, 512, "bias")).recipe;
  CHECK(with.arguments[1].kind == Argument::Kind::tensor_map);
  CHECK(with.tensors[2].present);
}

TEST_CASE_FIXTURE(Fixture, "a box that the hardware cannot map is an error of its argument") {
  Json manifest = gemm_tma();
  manifest["arguments"][0]["box"] = {"bk", "bm*4"};
  CHECK(refused(manifest, kTma, gemm(op, 512, 512, 512)).field == "arguments[0].box");
  manifest["arguments"][0]["box"] = {"bk/16+1", "bm"};
  manifest["arguments"][0].erase("swizzle_by_inner_bytes");
  CHECK(refused(manifest, kTma, gemm(op, 512, 512, 512)).field == "arguments[0].box");
  manifest["arguments"][0]["box"] = {"bk", "bm"};
  manifest["arguments"][0]["swizzle"] = "64B";
  CHECK(refused(manifest, kTma, gemm(op, 512, 512, 512)).field == "arguments[0].box");
  manifest["arguments"][0]["swizzle_by_inner_bytes"] = {{"64", "64B"}};
  CHECK(refused(manifest, kTma, gemm(op, 512, 512, 512)).field == "arguments[0].swizzle_by_inner_bytes");
}

TEST_CASE_FIXTURE(Fixture, "arguments keep the kernel's order, alignments and the real attribute's default") {
  const Recipe recipe = instance(gemm_mma(), kMma, gemm(op, 512, 512, 512)).recipe;
  REQUIRE(recipe.arguments.size() == 11);
  CHECK(recipe.arguments[3].name == "y");
  CHECK(recipe.arguments[10].type == "f32");
  CHECK(recipe.arguments[10].real_default == 0.5);
  CHECK(recipe.tensors[0].align_bytes == 16);
  CHECK(recipe.tensors[3].align_bytes == 4);
  CHECK(recipe.tensors[3].output);
  CHECK(recipe.tensors[3].stride_symbol == "ld_y");
  CHECK(recipe.tensors[2].stride_symbol.empty());
}

TEST_CASE_FIXTURE(Fixture, "a recipe survives JSON and CBOR unchanged") {
  for (const char* epilogue : {"none", "bias"}) {
    for (const auto& [manifest, text] :
         {std::pair{gemm_mma(), kMma}, std::pair{gemm_tma(), kTma}, std::pair{gemm_split(), "gemm_split{splits=4}"}}) {
      const Recipe recipe = instance(manifest, text, gemm(op, 512, 512, 512, epilogue)).recipe;
      const Json json = to_json(recipe);
      CHECK(must(recipe_from_json(json)) == recipe);
      CHECK(must(recipe_from_json(Json::parse(json.dump()))) == recipe);
      CHECK(must(recipe_from_json(Json::from_cbor(Json::to_cbor(json)))) == recipe);
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "a damaged recipe is an error, whatever was done to it") {
  const Json good = to_json(instance(gemm_tma(), kTma, gemm(op, 512, 512, 512, "bias")).recipe);
  const char* damages[] = {
      R"([{"op": "replace", "path": "/version", "value": 2}])",
      R"([{"op": "remove", "path": "/entry"}])",
      R"([{"op": "add", "path": "/extra", "value": 1}])",
      R"([{"op": "replace", "path": "/arguments/0/kind", "value": "tensormap"}])",
      R"([{"op": "replace", "path": "/arguments/0/name", "value": "z"}])",
      R"([{"op": "replace", "path": "/arguments/0/box/0", "value": 512}])",
      R"([{"op": "replace", "path": "/arguments/0/box", "value": [64]}])",
      R"([{"op": "replace", "path": "/arguments/0/swizzle", "value": "12B"}])",
      R"([{"op": "replace", "path": "/arguments/0/dims/0", "value": ["m", "+"]}])",
      R"([{"op": "replace", "path": "/arguments/4/bytes", "value": "m"}])",
      R"([{"op": "replace", "path": "/arguments/4/init", "value": "ones"}])",
      R"([{"op": "replace", "path": "/launch/block/0", "value": 0}])",
      R"([{"op": "replace", "path": "/launch/block/0", "value": 18446744073709551615}])",
      R"([{"op": "replace", "path": "/launch/grid", "value": [1, 1]}])",
      R"([{"op": "replace", "path": "/launch/dynamic_smem_bytes", "value": -1}])",
      R"([{"op": "replace", "path": "/tensors/0/dtype", "value": "bf61"}])",
      R"([{"op": "replace", "path": "/tensors/0/align_bytes", "value": 0}])",
      R"([{"op": "replace", "path": "/checks", "value": [1]}])",
      R"([{"op": "replace", "path": "/tensors", "value": {}}])",
  };
  for (const char* damage : damages) {
    CAPTURE(damage);
    CHECK_FALSE(recipe_from_json(good.patch(Json::parse(damage))).has_value());
  }
  CHECK_FALSE(recipe_from_json(Json()).has_value());
  CHECK_FALSE(recipe_from_json(Json::array()).has_value());
  must(recipe_from_json(good));
}
