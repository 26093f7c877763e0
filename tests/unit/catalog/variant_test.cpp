#include "model/variant_resolver.h"
#include "template_folder.h"

using namespace tunerd;
using namespace tunerd::testing;

namespace {

constexpr const char* kGood = "gemm_mma{bk=32,bm=128,bn=128,stages=3,wm=64,wn=64}";

struct Fixture {
  OpSpec op = parsed_gemm();
  Manifest mma = must(parse_manifest(gemm_mma(), op, "t.json"));
  Manifest tma = must(parse_manifest(gemm_tma(), op, "t.json"));
  Problem problem = gemm(op, 512, 512, 512);

  Error refused(const Manifest& manifest, const std::string& text, const DeviceSpec& device = h200()) const {
    const Status status = check_variant(manifest, op, variant(text), problem, device);
    REQUIRE_FALSE(status.has_value());
    return status.error();
  }
};

}  // namespace

TEST_CASE("a variant describes itself and is read back") {
  Variant made;
  made.template_name = "gemm_mma";
  made.params = {{"stages", 3}, {"bm", 128}, {"bias", -1}};
  CHECK(made.text() == "gemm_mma{bias=-1,bm=128,stages=3}");
  CHECK(variant(made.text()) == made);
  CHECK(variant("gemm_mma{stages=3,bm=128,bias=-1}") == made);
  CHECK(variant("simple{}").params.empty());
  CHECK(variant("simple{}").text() == "simple{}");
}

TEST_CASE("a malformed variant is an error that shows the text") {
  for (const char* text : {"", "gemm", "gemm{", "gemm}", "{bm=1}", "gemm{bm}", "gemm{bm=}", "gemm{bm=1,}",
                           "gemm{,bm=1}", "gemm{bm=1,bm=1}", "gemm{bm=1 }", "gemm{BM=1}",
                           "gemm{bm=99999999999999999999}", "gemm{bm=1.5}", "../gemm{bm=1}", "gemm{bm=1}x"}) {
    CAPTURE(text);
    const Result<Variant> parsed = Variant::parse(text);
    REQUIRE_FALSE(parsed.has_value());
    CHECK(parsed.error().field == "variant");
  }
  CHECK_FALSE(Variant::parse("gemm{" + std::string(5000, 'a') + "=1}").has_value());
}

TEST_CASE_FIXTURE(Fixture, "a variant that exists passes") {
  must(check_variant(mma, op, variant(kGood), problem, h200()));
}

TEST_CASE_FIXTURE(Fixture, "each parameter must be named, known and allowed") {
  const Error missing = refused(mma, "gemm_mma{bk=32,bm=128,bn=128,stages=3,wm=64}");
  CHECK(missing.field == "params.wn");
  const Error unknown = refused(mma, "gemm_mma{bk=32,bm=128,bn=128,stage=3,wm=64,wn=64}");
  CHECK(unknown.suggestion == "stages");
  const Error value = refused(mma, "gemm_mma{bk=32,bm=96,bn=128,stages=3,wm=64,wn=64}");
  CHECK(value.field == "params.bm");
  CHECK(value.value == "96");
  CHECK(value.expected == "one of 64, 128");
  CHECK(refused(mma, "gemm_tma{bk=32}").field == "template");
}

TEST_CASE_FIXTURE(Fixture, "a broken constraint gives its reason and the values") {
  DeviceSpec small = h200("sm_120a", 120);
  small.smem_per_block_bytes = 99 << 10;
  const Error error = refused(mma, "gemm_mma{bk=64,bm=128,bn=256,stages=4,wm=64,wn=64}", small);
  CHECK(error.field == "constraints[1]");
  CHECK(error.message == "stages do not fit in shared memory (smem=196608 smem_per_block_bytes=101376)");
}

TEST_CASE_FIXTURE(Fixture, "an architecture, dtype or attribute that the template does not serve is named") {
  CHECK(refused(mma, kGood, h200("sm_75", 75)).field == "arch");
  const char* text = "gemm_tma{bk=32,bm=64,bn=128,cluster_m=1}";
  CHECK(refused(tma, text, h200("sm_100a", 100)).field == "arch");
  problem = gemm(op, 512, 512, 512, "none", "fp16");
  CHECK(refused(tma, text).field == "dtype");
  problem = gemm(op, 512, 512, 512, "gelu");
  const Error error = refused(tma, text);
  CHECK(error.field == "epilogue");
  CHECK(error.value == "gelu");
}

TEST_CASE_FIXTURE(Fixture, "a launch past the hardware's limits is no variant") {
  const auto with_launch = [&](const char* launch) {
    Json json = gemm_simple();
    json["launch"].merge_patch(Json::parse(launch));
    const Manifest manifest = must(parse_manifest(json, op, "t.json"));
    return refused(manifest, "gemm_simple{}").field;
  };
  CHECK(with_launch(R"({"block": [2048]})") == "launch.block");
  CHECK(with_launch(R"({"block": [1024, 2]})") == "launch.block");
  CHECK(with_launch(R"({"block": [0]})") == "launch.block");
  CHECK(with_launch(R"({"block": [1, 1, 128]})") == "launch.block[2]");
  CHECK(with_launch(R"({"cluster": [8, 4]})") == "launch.cluster");
  CHECK(with_launch(R"({"dynamic_smem_bytes": 232449})") == "launch.dynamic_smem_bytes");
  CHECK(with_launch(R"({"dynamic_smem_bytes": "0-1"})") == "launch.dynamic_smem_bytes");
}

TEST_CASE_FIXTURE(Fixture, "clusters are refused where the hardware has none") {
  Json json = gemm_simple();
  json["launch"]["cluster"] = {2};
  const Manifest manifest = must(parse_manifest(json, op, "t.json"));
  must(check_variant(manifest, op, variant("gemm_simple{}"), problem, h200()));
  CHECK(refused(manifest, "gemm_simple{}", h200("sm_89", 89)).field == "launch.cluster");
}

TEST_CASE_FIXTURE(Fixture, "a derived value that cannot be computed is named") {
  Json json = gemm_mma();
  json["derived"]["ratio"] = "bm / (wm - 32)";
  const Manifest manifest = must(parse_manifest(json, op, "t.json"));
  const Error error = refused(manifest, "gemm_mma{bk=32,bm=128,bn=128,stages=3,wm=32,wn=64}");
  CHECK(error.field == "derived.ratio");
}

TEST_CASE_FIXTURE(Fixture, "a variant's symbols are parameters, derived values, the device's and the problem's") {
  const Symbols symbols = must(variant_symbols(mma, op, variant(kGood), problem, h200()));
  const std::pair<const char*, std::int64_t> expected[] = {
      {"bm", 128},        {"smem", 49152}, {"threads", 128}, {"sm_count", 132}, {"cc", 90},
      {"dtype_bytes", 2}, {"m", 512},      {"ld_y", 512},    {"has_bias", 0},   {"bytes_x", 524288}};
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    const std::int64_t* found = symbols.find(name);
    REQUIRE(found != nullptr);
    CHECK(*found == value);
  }
}

TEST_CASE_FIXTURE(Fixture, "what one variant resolved to does not leak into the next") {
  const VariantResolver resolver = must(VariantResolver::make(mma, op, problem, h200()));
  ResolvedVariant scratch;
  must(resolver.resolve(must(resolver.values_of(variant(kGood))), scratch));
  const ResolvedVariant alone = scratch;
  const auto other = must(resolver.values_of(variant("gemm_mma{bk=64,bm=64,bn=64,stages=2,wm=32,wn=32}")));
  must(resolver.resolve(other, scratch));
  CHECK(scratch.dynamic_smem_bytes == 32768);
  must(resolver.resolve(must(resolver.values_of(variant(kGood))), scratch));
  CHECK(scratch.symbols == alone.symbols);
  CHECK(scratch.threads == alone.threads);
}
