#include "template_folder.h"

using namespace tunerd;
using namespace tunerd::testing;

namespace {

// The error of `manifest` once `change` was merged into it (RFC 7396: null removes).
Error refused(Json manifest, const char* change) {
  manifest.merge_patch(Json::parse(change));
  const Result<Manifest> parsed = parse_manifest(manifest, parsed_gemm(), "t.json");
  REQUIRE_FALSE(parsed.has_value());
  return parsed.error();
}

Error refused(const char* change) { return refused(gemm_mma(), change); }

bool mentions(const Error& error, const std::string& word) { return error.text().find(word) != std::string::npos; }

}  // namespace

TEST_CASE("a manifest is read whole") {
  const Manifest manifest = must(parse_manifest(gemm_mma(), parsed_gemm(), "t.json"));
  CHECK(manifest.name == "gemm_mma");
  CHECK(manifest.min_cc == 80);
  CHECK(manifest.params.size() == 6);
  CHECK(manifest.arguments.size() == 11);
  CHECK(manifest.arguments.back().real == "scale");
  CHECK(manifest.align_bytes.at("bias") == 2);
  CHECK(must(manifest.threads.eval(Symbols{{"threads", 128}})) == 128);
  CHECK(must(manifest.cost.efficiency_permille.eval({})) == 600);
}

TEST_CASE("derived values are ordered by what they need, however they are written") {
  const Manifest manifest = must(parse_manifest(gemm_mma(), parsed_gemm(), "t.json"));
  std::vector<std::string> names;
  for (const Derived& derived : manifest.derived) names.push_back(derived.name);
  CHECK(names == std::vector<std::string>{"stage_bytes", "smem", "threads"});
}

TEST_CASE("derived values that depend on themselves are an error that names the cycle") {
  const Error error = refused(R"({"derived": {"stage_bytes": "smem / stages"}})");
  CHECK(mentions(error, "smem -> stage_bytes -> smem"));
  CHECK(mentions(refused(R"({"derived": {"smem": "smem + 1"}})"), "smem -> smem"));
}

TEST_CASE("a mistyped key is an error that suggests the right one") {
  CHECK(refused(R"({"constraint": []})").suggestion == "constraints");
  CHECK(refused(R"({"launch": {"gird": [1]}})").suggestion == "grid");
  CHECK(refused(R"({"cost": {"tile_flop": 1}})").suggestion == "tile_flops");
  CHECK(refused(R"({"derived": {"threads": {"expr": 1, "defined": true}}})").suggestion == "define");
}

TEST_CASE("an unknown name in an expression is found when the manifest is read, with its field and the nearest name") {
  struct Case {
    const char* change;
    const char* field;
    const char* suggestion;
  };
  const Case cases[] = {
      {R"({"derived": {"smem": "stages*stage_byte"}})", "t.json.derived.smem", "stage_bytes"},
      {R"({"constraints": [{"if": "smem <= smem_per_block_byte", "reason": "x"}]})", "t.json.constraints[0].if",
       "smem_per_block_bytes"},
      {R"({"validity": [{"if": "ld_xx % 8 == 0", "reason": "x"}]})", "t.json.validity[0].if", "ld_x"},
      {R"({"launch": {"grid": ["bmm*m"]}})", "t.json.launch.grid[0]", "bm"},
      {R"({"launch": {"block": ["thread"]}})", "t.json.launch.block[0]", "threads"},
      {R"({"cost": {"dram_bytes": "bytes_bia"}})", "t.json.cost.dram_bytes", "bytes_bias"},
      {R"({"tile": {"m": "bmm"}})", "t.json.tile.m", "bm"},
      {R"({"arguments": [{"tensor": "y"}, {"scalar": "a", "type": "i64", "expr": "ld_xx"}]})",
       "t.json.arguments[1].expr", "ld_x"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.change);
    const Error error = refused(c.change);
    CHECK(error.field == c.field);
    CHECK(error.suggestion == c.suggestion);
  }
}

TEST_CASE("what is constant for a kernel may not use the problem's size") {
  CHECK(refused(R"({"derived": {"smem": "k*2"}})").field == "t.json.derived.smem");
  CHECK(refused(R"({"constraints": [{"if": "m > 1", "reason": "x"}]})").value == "m");
  CHECK(refused(R"({"launch": {"dynamic_smem_bytes": "ld_x"}})").field == "t.json.launch.dynamic_smem_bytes");
  CHECK(refused(R"({"deterministic": {"if": "k == 1", "reason": "x"}})").field == "t.json.deterministic.if");
  CHECK(refused(gemm_tma(), R"({"launch": {"cluster": ["m"]}})").field == "t.json.launch.cluster[0]");
  CHECK(refused(R"({"launch": {"grid": ["bytes_x"]}})").field == "t.json.launch.grid[0]");
}

TEST_CASE("a parameter's name can inject nothing into the compiler's options") {
  for (const char* name : {"", "BM", "bm=1 -I/", "-include", "1bm", "b m", "bm;", "bmé"}) {
    CAPTURE(name);
    Json manifest = gemm_mma();
    manifest["params"][name] = {1};
    const Result<Manifest> parsed = parse_manifest(manifest, parsed_gemm(), "t.json");
    REQUIRE_FALSE(parsed.has_value());
    CHECK(parsed.error().field == "t.json.params." + std::string(name));
  }
}

TEST_CASE("a parameter may not take the name of a dimension, a symbol, a derived value or a macro") {
  for (const char* name :
       {"m", "ld_x", "has_bias", "sm_count", "dtype_bytes", "bytes_x", "dtype_bf16", "epilogue_bias"}) {
    CAPTURE(name);
    Json manifest = gemm_mma();
    manifest["params"][name] = {1};
    CHECK_FALSE(parse_manifest(manifest, parsed_gemm(), "t.json").has_value());
  }
  CHECK(refused(R"({"derived": {"bm": 1}})").field == "t.json.derived.bm");
}

TEST_CASE("parameters and their values are bounded") {
  Json many = gemm_mma();
  for (int i = 0; i < 11; ++i) many["params"]["p" + std::to_string(i)] = {1};
  const Result<Manifest> parsed = parse_manifest(many, parsed_gemm(), "t.json");
  REQUIRE_FALSE(parsed.has_value());
  CHECK(parsed.error().field == "t.json.params");

  Json wide = gemm_mma();
  for (int i = 0; i < 257; ++i) wide["params"]["bk"].push_back(1000 + i);
  const Result<Manifest> refused_wide = parse_manifest(wide, parsed_gemm(), "t.json");
  REQUIRE_FALSE(refused_wide.has_value());
  CHECK(refused_wide.error().field == "t.json.params.bk");

  CHECK(refused(R"({"params": {"bm": []}})").field == "t.json.params.bm");
  CHECK(refused(R"({"params": {"bm": [64, 64]}})").field == "t.json.params.bm[1]");
  CHECK(refused(R"({"params": {"bm": [64, 1.5]}})").field == "t.json.params.bm[1]");
  CHECK(refused(R"({"params": {"bm": [18446744073709551615]}})").field == "t.json.params.bm[0]");
}

TEST_CASE("a source may not leave the manifest's folder") {
  for (const char* source : {"../evil.cu", "/etc/passwd", "a/../../b.cu", ""}) {
    CAPTURE(source);
    Json manifest = gemm_mma();
    manifest["source"] = source;
    const Result<Manifest> parsed = parse_manifest(manifest, parsed_gemm(), "t.json");
    REQUIRE_FALSE(parsed.has_value());
    CHECK(parsed.error().field == "t.json.source");
  }
}

TEST_CASE("architectures, dtypes and attributes are checked against what exists") {
  CHECK(refused(R"({"arch": {"min": "sm80"}})").field == "t.json.arch.min");
  CHECK(refused(gemm_tma(), R"({"arch": {"only": ["hopper"]}})").field == "t.json.arch.only");
  CHECK(refused(R"({"arch": {"only": ["sm_90a"]}})").field == "t.json.arch");  // both min and only
  CHECK(refused(R"({"dtypes": ["bf61"]})").suggestion == "bf16");
  CHECK(refused(R"({"attributes": {"epilog": ["none"]}})").suggestion == "epilogue");
  CHECK(refused(R"({"attributes": {"epilogue": ["gelo"]}})").suggestion == "gelu");
  CHECK(refused(R"({"attributes": {"scale": ["1"]}})").field == "t.json.attributes");
  CHECK(refused(R"({"op": "gem"})").suggestion == "gemm");
}

TEST_CASE("arguments are checked against the op") {
  CHECK(refused(R"({"arguments": [{"tensor": "biass"}]})").suggestion == "bias");
  CHECK(refused(R"({"arguments": [{"tensr": "x"}]})").suggestion == "tensor");
  CHECK(mentions(refused(R"({"arguments": [{"tensor": "x"}]})"), "y"));
  CHECK(refused(R"({"arguments": [{"tensor": "y"}, {"scalar": "s", "type": "f32", "real": "scal"}]})").suggestion ==
        "scale");
  CHECK(refused(R"({"arguments": [{"tensor": "y"}, {"scalar": "s", "type": "i63", "expr": 1}]})").suggestion == "i64");
  CHECK(refused(R"({"arguments": [{"tensor": "y"}, {"workspace": 1}, {"workspace": 2}]})").field ==
        "t.json.arguments[2]");
  CHECK(refused(R"({"arguments": [{"tensor": "y"}, {"workspace": 1, "align_bytes": 3}]})").field ==
        "t.json.arguments[1].align_bytes");
  CHECK(refused(R"({"arguments": [{"tensor": "y"}, {"workspace": 1, "init": "zero"}]})").field ==
        "t.json.arguments[1].init");
  CHECK(refused(R"({"align_bytes": {"x": 24}})").field == "t.json.align_bytes.x");
}

TEST_CASE("a tensor map needs as many box sizes as dims and one stride fewer") {
  const auto with_map = [](const char* map) {
    Json manifest = gemm_tma();
    manifest["arguments"][0].merge_patch(Json::parse(map));
    const Result<Manifest> parsed = parse_manifest(manifest, parsed_gemm(), "t.json");
    REQUIRE_FALSE(parsed.has_value());
    return parsed.error().field;
  };
  CHECK(with_map(R"({"strides_bytes": []})") == "t.json.arguments[0].strides_bytes");
  CHECK(with_map(R"({"box": ["bk"]})") == "t.json.arguments[0].box");
  CHECK(with_map(R"({"dims": []})") == "t.json.arguments[0].dims");
  CHECK(with_map(R"({"swizzle": "256B"})") == "t.json.arguments[0].swizzle");
  CHECK(with_map(R"({"box": ["bk", "m"]})") == "t.json.arguments[0].box[1]");
  CHECK(with_map(R"({"swizzle_by_inner_bytes": {"many": "64B"}})") == "t.json.arguments[0].swizzle_by_inner_bytes");
}

TEST_CASE("a fallback with a validity rule is a contradiction") {
  const Error error = refused(gemm_simple(), R"({"validity": [{"if": "k % 8 == 0", "reason": "vector loads"}]})");
  CHECK(error.field == "t.json.validity");
}

TEST_CASE("a manifest serves the architectures it names and no others") {
  const OpSpec op = parsed_gemm();
  const Manifest mma = must(parse_manifest(gemm_mma(), op, "t.json"));
  CHECK(mma.supports_arch("sm_80"));
  CHECK(mma.supports_arch("sm_120a"));
  CHECK_FALSE(mma.supports_arch("sm_75"));
  CHECK_FALSE(mma.supports_arch("garbage"));
  const Manifest tma = must(parse_manifest(gemm_tma(), op, "t.json"));
  CHECK(tma.supports_arch("sm_90a"));
  CHECK_FALSE(tma.supports_arch("sm_100a"));
  CHECK(tma.supports(gemm(op, 1, 1, 1, "bias")));
  CHECK_FALSE(tma.supports(gemm(op, 1, 1, 1, "gelu")));
  CHECK_FALSE(tma.supports(gemm(op, 1, 1, 1, "none", "fp16")));
}
