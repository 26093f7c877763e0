#include "fixture.h"
#include "model/problem.h"

using namespace tunerd;
using namespace tunerd::testing;

namespace {
Problem made(const OpSpec& op, const std::vector<std::string>& words) { return must(make_problem(op, words)); }
std::int64_t at(const Symbols& symbols, const char* name) {
  const auto* value = symbols.find(name);
  if (value == nullptr) FAIL("no symbol " << std::string(name));
  return *value;
}
}  // namespace

TEST_CASE("symbols of a problem: dimensions, element size, strides, presence and compulsory bytes") {
  const OpSpec op = gemm();
  const Problem problem = made(op, {"m=3", "n=5", "k=7", "epilogue=bias", "ld_x=16"});
  const Symbols symbols = must(problem_symbols(op, problem));
  CHECK(at(symbols, "m") == 3);
  CHECK(at(symbols, "dtype_bytes") == 2);
  CHECK(at(symbols, "ld_x") == 16);
  CHECK(at(symbols, "ld_w") == 7);
  CHECK(at(symbols, "ld_y") == 5);
  CHECK(symbols.find("ld_bias") == nullptr);
  CHECK(at(symbols, "has_bias") == 1);
  CHECK(at(symbols, "has_residual") == 0);
  CHECK(at(symbols, "bytes_x") == 3 * 7 * 2);  // padding is not compulsory
  CHECK(at(symbols, "bytes_bias") == 5 * 4);   // its own dtype, fp32
  CHECK(at(symbols, "bytes_residual") == 0);
}

TEST_CASE("a tensor's presence and dtype follow the problem") {
  const OpSpec op = gemm();
  const Problem problem = made(op, {"m=1", "n=1", "k=1", "dtype=fp16", "epilogue=residual"});
  CHECK(is_present(*op.tensor("x"), problem));
  CHECK(is_present(*op.tensor("residual"), problem));
  CHECK_FALSE(is_present(*op.tensor("bias"), problem));
  CHECK(tensor_dtype(*op.tensor("x"), problem) == DType::fp16);
  CHECK(tensor_dtype(*op.tensor("bias"), problem) == DType::fp32);
}

TEST_CASE("a tensor's span counts whole strides for all rows but the last") {
  const OpSpec op = gemm();
  const Symbols symbols = must(problem_symbols(op, made(op, {"m=3", "n=5", "k=7", "ld_x=16", "epilogue=bias"})));
  CHECK(must(tensor_span_elements(*op.tensor("x"), symbols)) == 2 * 16 + 7);
  CHECK(must(tensor_span_elements(*op.tensor("w"), symbols)) == 35);
  CHECK(must(tensor_span_elements(*op.tensor("bias"), symbols)) == 5);
}

TEST_CASE("tensors of more than 2^32 bytes are counted in 64 bits") {
  const OpSpec op = gemm();
  const Problem problem = made(op, {"m=262144", "n=65536", "k=1", "ld_y=70000"});
  const Symbols symbols = must(problem_symbols(op, problem));
  CHECK(at(symbols, "bytes_y") == std::int64_t{262144} * 65536 * 2);
  CHECK(must(tensor_span_elements(*op.tensor("y"), symbols)) == std::int64_t{262143} * 70000 + 65536);
}

TEST_CASE("a tensor past 2^62 bytes is an error that names it") {
  const OpSpec op = gemm();
  const Error whole = error_of(make_problem(op, std::vector<std::string>{"m=2147483648", "n=2147483648", "k=1"}));
  CHECK(whole.field == "y");
  CHECK(whole.expected == "a tensor of at most 2^62 bytes");
  const Error padded =
      error_of(make_problem(op, std::vector<std::string>{"m=2147483648", "n=1", "k=1", "ld_x=1099511627776"}));
  CHECK(padded.field == "x");
  CHECK(make_problem(op, std::vector<std::string>{"m=2147483648", "n=1073741824", "k=1"}).has_value());
}

TEST_CASE("a shape that comes to nothing is an error, not an empty tensor") {
  Json json = gemm_json();
  json["tensors"][0]["shape"] = {"m - 4", "k"};
  const OpSpec op = must(parse_op(json, "op.json"));
  const Error error = error_of(make_problem(op, std::vector<std::string>{"m=4", "n=1", "k=1"}));
  CHECK(error.field == "x");
  CHECK(error.value == "m - 4 = 0");
}

TEST_CASE("a problem made by hand without a dimension has no symbols, and says which is missing") {
  Problem problem;
  problem.op = "gemm";
  problem.dims = {{"m", 1}, {"n", 1}};
  CHECK(error_of(problem_symbols(gemm(), problem)).field == "k");
}
