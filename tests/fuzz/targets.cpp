#include "targets.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "cache/bundle.h"
#include "model/manifest.h"
#include "sample_answer.h"
#include "wire/frame.h"
#include "wire/symbols.h"

namespace tunerd::fuzz {
namespace {

void must(bool condition) {
  if (!condition) std::abort();
}

std::string body_of(const Json& json) { return wire::encode_frame(json).substr(wire::kHeaderBytes); }

// Header, then body; what was read must print, and read the same again.
bool run_frame(std::string_view bytes) {
  const auto header = wire::parse_header(bytes, wire::kMaxRequestBytes);
  if (!header) {
    must(!header.error().message.empty());
    return false;
  }
  const auto body = wire::parse_body(bytes.substr(wire::kHeaderBytes));
  if (!body) return false;
  (void)body->dump();
  must(wire::parse_body(body_of(*body)).has_value());
  return true;
}
std::vector<std::string> frame_seeds() {
  return {wire::encode_frame(Json{{"id", 1}, {"type", "hello"}, {"protocol_min", 1}, {"protocol_max", 1}}),
          wire::encode_frame(wire::to_json(sample_answer()), wire::kFlagFd),
          wire::encode_frame(Json{{"blob", Json::binary({1, 2, 3})}, {"deep", {{{1, {2, {3}}}}}}, {"real", -0.5}})};
}

bool run_get_request(std::string_view bytes) {
  const auto body = wire::parse_body(bytes);
  if (!body) return false;
  const auto request = wire::get_request_from_json(*body);
  if (!request) {
    must(!request.error().text().empty());
    return false;
  }
  must(wire::get_request_from_json(wire::to_json(*request)).has_value());
  return true;
}
std::vector<std::string> get_request_seeds() {
  wire::GetRequest request;
  request.op = "gemm";
  request.fields = {{"m", 16}, {"n", 4096}, {"k", 4096}, {"dtype", "bf16"}, {"epilogue", "none"}};
  Json json = wire::to_json(request);
  const std::string plain = body_of(json);
  json["id"] = 1;
  json["type"] = "get";
  return {plain, body_of(json)};
}

bool run_answer(std::string_view bytes) {
  const auto body = wire::parse_body(bytes);
  if (!body) return false;
  const auto answer = wire::get_answer_from_json(*body);
  if (answer) (void)wire::to_json(*answer).dump();
  return answer.has_value();
}
std::vector<std::string> answer_seeds() { return {body_of(wire::to_json(sample_answer()))}; }

// A recipe that was read must evaluate, or say why not, for any sizes.
bool run_recipe(std::string_view bytes) {
  const auto body = wire::parse_body(bytes);
  if (!body) return false;
  const auto recipe = recipe_from_json(*body);
  if (!recipe) return false;
  must(recipe_from_json(to_json(*recipe)).has_value());
  for (const std::int64_t size :
       {std::int64_t{1}, std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 31, INT64_MAX}) {
    const auto symbols = wire::recipe_symbols(*recipe, {{"m", size}, {"n", size}, {"k", size}}, {}, DType::bf16);
    if (symbols) (void)concrete_launch(*recipe, *symbols);
  }
  return true;
}
std::vector<std::string> recipe_seeds() { return {body_of(to_json(sample_recipe()))}; }

const OpSpec& sample_op() {
  static const OpSpec op = [] {
    const Json document = Json::parse(R"({
      "op": "gemm", "summary": "y = x · wᵀ", "dims": [{ "name": "m" }, { "name": "n" }, { "name": "k" }], "dtypes": ["bf16", "fp16"],
      "attributes": { "epilogue": { "values": ["none", "bias"], "default": "none" }, "eps": { "real": true, "default": 1e-6 } },
      "tensors": [
        { "name": "x", "shape": ["m", "k"], "dtype": "$dtype", "role": "input" },
        { "name": "w", "shape": ["n", "k"], "dtype": "$dtype", "role": "input" },
        { "name": "bias", "shape": ["n"], "dtype": "$dtype", "role": "input", "when": { "epilogue": ["bias"] } },
        { "name": "y", "shape": ["m", "n"], "dtype": "$dtype", "role": "output" } ],
      "flops": "2*m*n*k", "fused_bytes": "bytes_x + bytes_w + bytes_bias + bytes_y", "compute": "tensor",
      "tolerance": { "c": 2.0, "exact": true }, "reference": { "source": "reference.cu", "entry": "gemm_reference" } })");
    auto parsed = parse_op(document, "op.json");
    if (!parsed) std::fprintf(stderr, "%s\n", parsed.error().text().c_str());
    must(parsed.has_value());
    return *parsed;
  }();
  return op;
}

bool run_manifest(std::string_view bytes) {
  const Json document = Json::parse(bytes.begin(), bytes.end(), nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) return false;
  const auto manifest = parse_manifest(document, sample_op(), "fuzz.json");
  if (!manifest) must(!manifest.error().text().empty());
  return manifest.has_value();
}
std::vector<std::string> manifest_seeds() {
  return {
      R"json({ "template": "t", "op": "gemm", "source": "t.cu", "entry": "t", "arch": { "min": "sm_80" }, "dtypes": ["bf16"],
    "attributes": { "epilogue": ["none", "bias"] }, "params": { "bm": [64, 128], "stages": [2, 3] },
    "derived": { "threads": { "expr": "bm*2", "define": true }, "smem": "stages*bm*64*dtype_bytes" },
    "constraints": [ { "if": "smem <= smem_per_block_bytes", "reason": "stages do not fit" } ],
    "validity": [ { "if": "k % 8 == 0", "reason": "rows of 16 bytes" } ], "align_bytes": { "x": 16 },
    "arguments": [ { "tensor": "x" }, { "tensor": "bias" }, { "tensor": "y" }, { "scalar": "m", "type": "i64", "expr": "m" },
      { "scalar": "eps", "type": "f32", "real": "eps" },
      { "tensor_map": "w", "dims": ["k", "n"], "strides_bytes": ["ld_w*dtype_bytes"], "box": [64, "bm"], "swizzle": "128B" },
      { "workspace": "m*n*4", "align_bytes": 256, "init": "none" } ],
    "launch": { "grid": ["ceildiv(m,bm)", 1, 1], "block": ["threads", 1, 1], "dynamic_smem_bytes": "smem" },
    "tile": { "m": "bm" }, "granularity": { "k": 8 }, "cost": { "tiles": "ceildiv(m,bm)" }, "fallback": false })json"};
}

bool run_bundle(std::string_view bytes) {
  const auto bundle = cache::decode_bundle(bytes);
  if (!bundle) {
    must(!bundle.error().text().empty());
    return false;
  }
  must(cache::decode_bundle(cache::encode_bundle(*bundle)).has_value());
  return true;
}
std::vector<std::string> bundle_seeds() {
  cache::Bundle bundle;
  bundle.created_at = "2026-01-01T00:00:00Z";
  bundle.created_by = "tunerd 0.1.0";
  return {cache::encode_bundle(bundle)};
}

}  // namespace

const std::vector<Target>& targets() {
  static const std::vector<Target> all{
      {"frame", run_frame, frame_seeds},          {"get_request", run_get_request, get_request_seeds},
      {"answer", run_answer, answer_seeds},       {"recipe", run_recipe, recipe_seeds},
      {"manifest", run_manifest, manifest_seeds}, {"bundle", run_bundle, bundle_seeds}};
  return all;
}

}  // namespace tunerd::fuzz
