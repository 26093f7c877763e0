#include "model/problem.h"

#include <cmath>

#include "fixture.h"

using namespace tunerd;
using namespace tunerd::testing;

namespace {

Json fields(std::int64_t m = 16) { return {{"m", m}, {"n", 4096}, {"k", 4096}}; }
Problem made(const Json& json) { return must(make_problem(gemm(), json)); }
Error refused(const Json& json) { return error_of(make_problem(gemm(), json)); }
Error refused(const std::string& field, const Json& value) {
  Json json = fields();
  json[field] = value;
  return refused(json);
}

}  // namespace

TEST_CASE("a problem's key has the dimensions in the op's order, then dtype, then attributes") {
  Json json = fields();
  json["dtype"] = "bf16";
  json["epilogue"] = "none";
  CHECK(made(json).key(gemm()) == "gemm{m=16,n=4096,k=4096,dtype=bf16,epilogue=none}");
  json["dtype"] = "fp16";
  json["epilogue"] = "residual";
  json["ld_y"] = 8192;
  json["ld_residual"] = 5000;
  json["allow_nondeterministic"] = true;
  CHECK(made(json).key(gemm()) ==
        "gemm{m=16,n=4096,k=4096,dtype=fp16,epilogue=residual,ld_residual=5000,ld_y=8192,nondeterministic=1}");
}

TEST_CASE("absent fields take the op's first dtype and the attributes' defaults") {
  const Problem problem = made(fields());
  CHECK(problem.dtype == DType::bf16);
  CHECK(problem.attributes.at("epilogue") == "none");
  CHECK(problem.reals.at("eps") == 1e-6);
  CHECK_FALSE(problem.allow_nondeterministic);
}

TEST_CASE("words, numeric text and numbers make the same problem, op and from are skipped") {
  Json json = fields();
  json["op"] = "gemm";
  json["from"] = "a model's layer";
  json["dtype"] = "fp16";
  json["ld_x"] = "5000";
  const Problem problem = made(json);
  CHECK(must(make_problem(gemm(), std::vector<std::string>{"k=4096", "m=16", "n=4096", "dtype=fp16", "ld_x=5000"})) ==
        problem);
  json["m"] = "16";
  CHECK(made(json) == problem);
}

TEST_CASE("a dimension that is no integer from 1 to 2^31 is an error that names field, value and range") {
  const struct {
    Json value;
    const char* shown;
  } cases[] = {{0, "0"},
               {-1, "-1"},
               {2147483649, "2147483649"},
               {INT64_MIN, "-9223372036854775808"},
               {UINT64_MAX, "18446744073709551615"},
               {1.5, "1.5"},
               {16.0, "16.0"},
               {"0", "0"},
               {"-4", "-4"},
               {"16x", "16x"},
               {"", ""},
               {" 16", " 16"},
               {"+16", "+16"},
               {"1e3", "1e3"},
               {"0x10", "0x10"},
               {"99999999999999999999", "99999999999999999999"},
               {true, "true"},
               {nullptr, "null"},
               {{16}, "[16]"}};
  for (const auto& row : cases) {
    CAPTURE(row.shown);
    const Error error = refused("m", row.value);
    CHECK(error.code == Code::invalid_argument);
    CHECK(error.field == "m");
    CHECK(error.value == row.shown);
    CHECK(error.expected == "an integer from 1 to 2147483648");
  }
  CHECK(made({{"m", 2147483648}, {"n", 1}, {"k", 1}}).dims.at("m") == 2147483648);
}

TEST_CASE("a dimension's own range is the one that is checked") {
  Json op_json = gemm_json();
  op_json["dims"][2] = {{"name", "k"}, {"min", 8}, {"max", 64}};
  const OpSpec op = must(parse_op(op_json, "op.json"));
  CHECK(error_of(make_problem(op, fields())).expected == "an integer from 8 to 64");
}

TEST_CASE("a missing dimension is named with its range") {
  const Error error = refused(Json{{"m", 1}, {"n", 1}});
  CHECK(error.message == "Missing dimension k of op gemm");
  CHECK(error.field == "k");
  CHECK(error.expected == "an integer from 1 to 2147483648");
}

TEST_CASE("an unknown field suggests the nearest of dimensions, dtype, attributes, strides and flags") {
  const std::pair<const char*, const char*> cases[] = {
      {"epliogue", "epilogue"}, {"dtpye", "dtype"},
      {"ld_z", "ld_x"},         {"M", "m"},
      {"epps", "eps"},          {"allow_nondeterminstic", "allow_nondeterministic"}};
  for (const auto& [typo, nearest] : cases) {
    CAPTURE(typo);
    const Error error = refused(typo, 1);
    CHECK(error.message == "Unknown field " + std::string(typo) + " for op gemm");
    CHECK(error.field == typo);
    CHECK(error.suggestion == nearest);
    CHECK(error.expected.find("one of m, n, k, dtype, epilogue, eps, ld_x") == 0);
  }
  CHECK(refused("ld_bias", 1).field == "ld_bias");  // rank 1 has no stride
}

TEST_CASE("a dtype or attribute value that the op does not have lists its own and suggests the nearest") {
  CHECK(refused("dtype", "fp32").expected == "one of bf16, fp16");
  CHECK(refused("dtype", "bf61").suggestion == "bf16");
  CHECK(refused("dtype", 16).value == "16");
  const Error error = refused("epilogue", "gleu");
  CHECK(error.field == "epilogue");
  CHECK(error.value == "gleu");
  CHECK(error.suggestion == "gelu");
}

TEST_CASE("a real attribute must be a number that fp32 holds") {
  Json json = fields();
  json["eps"] = "1e-5";
  CHECK(made(json).reals.at("eps") == 1e-5);
  json["eps"] = 1;
  CHECK(made(json).reals.at("eps") == 1.0);
  for (const Json& value : {Json("1e-5x"), Json(""), Json("nan"), Json("inf"), Json(std::nan("")), Json(1e300),
                            Json("1e999"), Json(true), Json(" 1")}) {
    CAPTURE(value.dump());
    CHECK(refused("eps", value).expected == "a finite number within fp32");
  }
}

TEST_CASE("a flag is true, false, 1 or 0") {
  Json json = fields();
  for (const Json& value : {Json(true), Json("true"), Json("1"), Json(1)}) {
    json["allow_nondeterministic"] = value;
    CHECK(made(json).allow_nondeterministic);
  }
  CHECK(refused("allow_nondeterministic", "yes").expected == "true or false");
}

TEST_CASE("a stride below its row is an error, one equal to it is no padding, one of an absent tensor is refused") {
  CHECK(refused("ld_x", 4095).expected == "at least the row of 4096 elements");
  CHECK(refused("ld_x", 0).field == "ld_x");
  Json json = fields();
  json["ld_x"] = 4096;
  CHECK(made(json) == made(fields()));
  CHECK(refused("ld_residual", 8192).expected == "no stride: residual is absent for these attributes");
}

TEST_CASE("words must be name=value, each name once") {
  const auto words = [](std::vector<std::string> list) { return error_of(make_problem(gemm(), list)); };
  CHECK(words({"m16"}).expected == "name=value, for example m=16");
  CHECK(words({"=16"}).value == "=16");
  CHECK(words({"m=1", "m=2"}).expected == "each field once");
  CHECK(words({"m=", "n=1", "k=1"}).field == "m");
  CHECK(words({"m=1=2", "n=1", "k=1"}).value == "1=2");
}

TEST_CASE("what is not an object makes no problem") {
  CHECK(refused(Json::array({1})).field == "problem");
  CHECK(refused(Json("m=1")).value == "\"m=1\"");
}

TEST_CASE("garbage bytes in a field or value give an error that can be written as JSON again") {
  CHECK_NOTHROW(Json(refused("dtype", "bf\xff").text()).dump());
  CHECK_NOTHROW(Json(refused("m\xff", 1).text()).dump());
  CHECK_NOTHROW(Json(refused("epilogue", std::string(79, 'a') + "é").text()).dump());
}

TEST_CASE("a problem survives JSON, and a changed one is refused") {
  Json json = fields();
  json["epilogue"] = "residual";
  json["ld_x"] = 5000;
  json["eps"] = 1e-5;
  json["allow_nondeterministic"] = true;
  const OpSpec op = gemm();
  const Problem problem = made(json);
  const Json stored = problem.to_json();
  CHECK(must(problem_from_json(op, stored)) == problem);
  CHECK(must(problem_from_json(op, Json::from_cbor(Json::to_cbor(stored)))) == problem);

  const auto changed = [&](const char* pointer, const Json& value) {
    Json copy = stored;
    copy[Json::json_pointer(pointer)] = value;
    return error_of(problem_from_json(op, copy));
  };
  CHECK(changed("/op", "gem").expected == "gemm");
  CHECK(changed("/dims/m", 0).field == "m");
  CHECK(changed("/dims/epilogue", "bias").field == "problem.dims");
  CHECK(changed("/attributes/m", 5).field == "problem.attributes");
  CHECK(changed("/attributes/eps", 1).field == "problem.attributes");
  CHECK(changed("/strides/ld_x", 5).field == "ld_x");
  CHECK(changed("/dtype", "fp64").field == "dtype");
  CHECK(changed("/dtpye", "fp16").suggestion == "dtype");
  CHECK(changed("/allow_nondeterministic", 1).expected == "true or false");
  Json without = stored;
  without["dims"].erase("k");
  CHECK(error_of(problem_from_json(op, without)).message == "Missing dimension k of op gemm");
}

TEST_CASE("the family leaves out dimensions and strides, and only those") {
  Json json = fields(16), other = fields(32);
  other["ld_x"] = 8192;
  CHECK(made(json).family() == made(other).family());
  CHECK(made(json).family() == "gemm{dtype=bf16,epilogue=none}");
  for (const auto& [field, value] :
       {std::pair<const char*, Json>{"dtype", "fp16"}, {"epilogue", "gelu"}, {"allow_nondeterministic", true}}) {
    Json changed = fields();
    changed[field] = value;
    CHECK(made(changed).family() != made(json).family());
    CHECK(made(changed).key(gemm()) != made(json).key(gemm()));
  }
}

TEST_CASE("real attributes are launch-time scalars: not in the key") {
  Json json = fields();
  json["eps"] = 1e-3;
  CHECK(made(json).key(gemm()) == made(fields()).key(gemm()));
}
