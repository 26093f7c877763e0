#include "model/op.h"

#include "fixture.h"

using namespace tunerd;
using namespace tunerd::testing;

namespace {

// The error of gemm's op.json after one change.
template <class Change>
Error broken(Change change) {
  Json json = gemm_json();
  change(json);
  return error_of(parse_op(json, "op.json"));
}

}  // namespace

TEST_CASE("an op is read whole: dimensions in order, attributes by name, tensors, cost, tolerance, reference") {
  const OpSpec op = gemm();
  CHECK(op.name == "gemm");
  REQUIRE(op.dims.size() == 3);
  CHECK(op.dims[0].name == "m");
  CHECK(op.dims[2].name == "k");
  CHECK(op.dims[1].min == 1);
  CHECK(op.dims[1].max == 2147483648);
  CHECK(op.dtypes == std::vector<DType>{DType::bf16, DType::fp16});
  REQUIRE(op.attributes.size() == 2);
  CHECK(op.attribute("epilogue")->values.size() == 4);
  CHECK(op.attribute("epilogue")->default_value == "none");
  CHECK(op.attribute("eps")->real);
  CHECK(op.attribute("eps")->default_real == 1e-6);
  REQUIRE(op.tensors.size() == 5);
  CHECK(op.tensor("bias")->shape.size() == 1);
  CHECK(op.tensor("bias")->when.at("epilogue") == std::vector<std::string>{"bias"});
  CHECK(op.tensor("y")->role == Role::output);
  CHECK(op.tensor("x")->dtype == "$dtype");
  CHECK(op.tensor("x")->distribution == "gaussian");
  CHECK(op.tolerance.c == 2.0);
  CHECK(op.tolerance.exact);
  CHECK(op.reference.entry == "gemm_reference");
  CHECK(op.document == gemm_json());
  CHECK(op.dim("q") == nullptr);
  CHECK(op.tensor("q") == nullptr);
  CHECK(op.attribute("q") == nullptr);
}

TEST_CASE("the order of dimensions is the file's, not the alphabet's") {
  Json json = gemm_json();
  json["dims"] = Json::parse(R"([{"name":"n"},{"name":"k","min":8,"max":64},{"name":"m"}])");
  const OpSpec op = must(parse_op(json, "op.json"));
  CHECK(op.dims[0].name == "n");
  CHECK(op.dims[1].name == "k");
  CHECK(op.dims[1].min == 8);
  CHECK(op.dims[1].max == 64);
}

TEST_CASE("a comment may stand in any object of op.json") {
  Json json = gemm_json();
  json["//"] = "whole";
  json["dims"][0]["//"] = "dim";
  json["attributes"]["//"] = "attributes";
  json["attributes"]["epilogue"]["//"] = "attribute";
  json["tensors"][2]["//"] = "tensor";
  json["tensors"][2]["when"]["//"] = "when";
  json["tolerance"]["//"] = "tolerance";
  json["tolerance"]["exact_when"]["//"] = "exact_when";
  json["reference"]["//"] = "reference";
  must(parse_op(json, "op.json"));
}

TEST_CASE("every typo in op.json is an error that names the field and suggests the nearest") {
  const struct {
    std::string pointer;  // where to put
    Json value;
    std::string field;
    std::string suggestion;
  } cases[] = {
      {"/flosp", 1, "op.json.flosp", "flops"},
      {"/dims/1/mni", 1, "op.json.dims[1].mni", "min"},
      {"/dtypes/0", "bf61", "op.json.dtypes", "bf16"},
      {"/attributes/epilogue/defalut", "none", "op.json.attributes.epilogue.defalut", "default"},
      {"/attributes/epilogue/default", "nnoe", "op.json.attributes.epilogue.default", "none"},
      {"/attributes/eps/vaules", 1, "op.json.attributes.eps.vaules", ""},
      {"/tensors/0/role", "inptu", "op.json.tensors[0].role", "input"},
      {"/tensors/0/dtype", "fp23", "op.json.tensors[0].dtype", ""},
      {"/tensors/0/distribution", "gausian", "op.json.tensors[0].distribution", "gaussian"},
      {"/tensors/0/shpae", 1, "op.json.tensors[0].shpae", "shape"},
      {"/tensors/2/when", Json{{"epilog", {"bias"}}}, "op.json.tensors[2].when", "epilogue"},
      {"/tensors/2/when/epilogue/0", "bais", "op.json.tensors[2].when.epilogue", "bias"},
      {"/tensors/2/when/epilogue", Json::array(), "op.json.tensors[2].when.epilogue", ""},
      {"/flops", "2*m*n*kk", "op.json.flops", ""},
      {"/fused_bytes", "byte_x", "op.json.fused_bytes", "bytes_x"},
      {"/compute", "tensr", "op.json.compute", "tensor"},
      {"/tolerance/exactt", true, "op.json.tolerance.exactt", "exact"},
      {"/tolerance/c", 0, "op.json.tolerance.c", ""},
      {"/tolerance/c", 1000, "op.json.tolerance.c", ""},
      {"/reference/entyr", "x", "op.json.reference.entyr", "entry"},
      {"/op", "Gemm", "op.json.op", ""},
      {"/op", "min", "op.json.op", ""},
      {"/dims/0/min", 0, "op.json.dims[0].min", ""},
      {"/dims/0/max", 2147483649, "op.json.dims[0].max", ""},
      {"/dims/0/max", 0, "op.json.dims[0].max", ""},
      {"/dims", Json::array(), "op.json.dims", ""},
      {"/dims", Json{{"m", Json::object()}}, "op.json.dims", ""},
      {"/dtypes", Json::array(), "op.json.dtypes", ""},
      {"/dtypes", {"bf16", "bf16"}, "op.json.dtypes", ""},
      {"/tensors", Json::array(), "op.json.tensors", ""},
      {"/tensors/0/shape", {"m", "n", "k"}, "op.json.tensors[0].shape", ""},
      {"/tensors/0/shape/0", "mm*2", "op.json.tensors[0].shape[0]", ""},
      {"/tensors/0/shape/0", "m*", "op.json.tensors[0].shape[0]", ""},
      {"/attributes/epilogue/values", {"none", "none"}, "op.json.attributes.epilogue.values", ""},
      {"/attributes/epilogue/values", Json::array(), "op.json.attributes.epilogue.values", ""},
      {"/attributes", Json::array(), "op.json.attributes", ""},
  };
  for (const auto& row : cases) {
    CAPTURE(row.pointer);
    const Error error = broken([&](Json& json) { json[Json::json_pointer(row.pointer)] = row.value; });
    CHECK(error.code == Code::invalid_argument);
    CHECK(error.field == row.field);
    CHECK_FALSE(error.expected.empty());
    if (!row.suggestion.empty()) CHECK(error.suggestion == row.suggestion);
  }
}

TEST_CASE("every required field that is missing is named") {
  for (const char* key : {"op", "dims", "dtypes", "tensors", "flops", "fused_bytes", "reference"}) {
    CAPTURE(key);
    CHECK(broken([&](Json& json) { json.erase(key); }).field == "op.json." + std::string(key));
  }
}

TEST_CASE("a misspelt real is named, not the values that it would make unnecessary") {
  const Error error = broken([](Json& json) { json["attributes"]["eps"] = {{"rael", true}, {"default", 1e-6}}; });
  CHECK(error.field == "op.json.attributes.eps.rael");
  CHECK(error.suggestion == "real");
}

TEST_CASE("names that would meet in one scope are refused") {
  for (const char* name : {"n", "epilogue", "bytes_x", "has_bias", "ld_w", "dtype", "op", "from", "dtype_bytes",
                           "allow_nondeterministic", "sm_count", "l2_bytes"}) {
    CAPTURE(name);
    const Error error = broken([&](Json& json) { json["dims"].push_back({{"name", name}}); });
    CHECK(error.value == name);
    CHECK(error.expected.find("a name used once") == 0);
  }
}

TEST_CASE("an op without an output is refused") {
  const Error error = broken([](Json& json) { json["tensors"][4]["role"] = "input"; });
  CHECK(error.field == "op.json.tensors");
  CHECK(error.expected == "at least one tensor with role output");
}

TEST_CASE("when may not name a real attribute") {
  CHECK(broken([](Json& json) { json["tensors"][2]["when"] = {{"eps", {"1"}}}; }).expected == "one of epilogue");
}

TEST_CASE("a wrong type in place of text never throws, whatever its bytes") {
  CHECK(broken([](Json& json) { json["tensors"][2]["when"] = "a\xff"; }).field == "op.json.tensors[2].when");
  CHECK(broken([](Json& json) {
          json["tensors"][2]["shape"] = Json{{"a\xff", 1}};
        }).field == "op.json.tensors[2].shape");
  CHECK(error_of(parse_op(Json("text"), "op.json")).expected == "an object");
}
