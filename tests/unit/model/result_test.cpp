#include "model/result.h"

#include "fixture.h"

using namespace tunerd;
using namespace tunerd::testing;

TEST_CASE("every code has a word of its own that reads back") {
  for (int i = 0; i <= static_cast<int>(Code::internal); ++i) {
    const auto code = static_cast<Code>(i);
    CAPTURE(to_string(code));
    CHECK(code_from_string(to_string(code)) == code);
    CHECK((code == Code::internal) == (to_string(code) == "internal"));
  }
  CHECK(code_from_string("of another version") == Code::internal);
}

TEST_CASE("an error's text has the message, then the parts that are set") {
  CHECK(Error{Code::io, "Cannot open it", {}, {}, {}, {}}.text() == "Cannot open it");
  CHECK(Error{Code::io, "No", "dtype", "bf61", "one of bf16, fp16", "bf16"}.text() ==
        "No (dtype: bf61; expected one of bf16, fp16; did you mean bf16?)");
  CHECK(Error{Code::io, "No", "dtype", {}, {}, {}}.text() == "No (dtype)");
  CHECK(Error{Code::io, "No", {}, {}, "a word", {}}.text() == "No (expected a word)");
}

TEST_CASE("the nearest match is the one of least edit distance, and none when all are far") {
  const std::vector<std::string> names{"bias", "residual", "bias_residual", "gelu", "silu"};
  CHECK(nearest_match("residaul", names) == "residual");
  CHECK(nearest_match("bias_residua", names) == "bias_residual");
  CHECK(nearest_match("gleu", names) == "gelu");
  CHECK(nearest_match("attention", names).empty());
  CHECK(nearest_match("anything", {}).empty());
}

TEST_CASE("two letters swapped are one typo, nearer than two replaced") {
  CHECK(nearest_match("mni", {"max", "min"}) == "min");
  CHECK(nearest_match("stagse", {"stage_", "stages"}) == "stages");
}

TEST_CASE("case alone is no difference: M suggests m, BF16 suggests bf16") {
  CHECK(nearest_match("M", {"k", "m", "n"}) == "m");
  CHECK(nearest_match("BF16", {"fp16", "bf16"}) == "bf16");
}

TEST_CASE("a one-letter name is no near match of another letter") {
  CHECK(nearest_match("x", {"k", "m", "n"}).empty());
}

TEST_CASE("a huge word is not compared with anything") {
  CHECK(nearest_match(std::string(1 << 20, 'a'), {"aaaa"}).empty());
}

TEST_CASE("an unknown name lists the known ones and suggests the nearest") {
  const Error error = unknown_name("dtype", "bf61", {"bf16", "fp16"}).value();
  CHECK(error.code == Code::invalid_argument);
  CHECK(error.field == "dtype");
  CHECK(error.value == "bf61");
  CHECK(error.expected == "one of bf16, fp16");
  CHECK(error.suggestion == "bf16");
}

TEST_CASE("an input error shows valid, printable, bounded text whatever bytes came in") {
  CHECK(bad_input("f", "a\xffz", "text").value().value == "a?z");
  CHECK(bad_input("f\n", "a\nb\x1b[31m", "text").value().text() == "Bad value for f? (f?: a?b?[31m; expected text)");
  CHECK(bad_input("f", std::string(10'000, 'x'), "text").value().value.size() == 515);
}

TEST_CASE("cutting a text never splits a character") {
  CHECK(legible("wᵀ", 4) == "wᵀ");
  CHECK(legible("wᵀ", 3) == "w...");
  CHECK(legible("é", 1) == "...");
}

TEST_CASE("overlong forms, surrogates and values past U+10FFFF are not passed on") {
  CHECK(legible("\xC0\xAF") == "??");
  CHECK(legible("\xE0\x80\xAF") == "???");
  CHECK(legible("\xED\xA0\x80") == "???");
  CHECK(legible("\xF4\x90\x80\x80") == "????");
  CHECK(legible("\xF0\x9F\x98\x80") == "\xF0\x9F\x98\x80");
  CHECK(legible("\xE1\x80") == "??");  // cut off
}

namespace {
Result<int> half(int value) {
  if (value % 2 != 0) return bad_input("value", std::to_string(value), "an even number");
  return value / 2;
}
Result<int> quarter(int value) {
  TRY_ASSIGN(const int once, half(value));
  TRY_ASSIGN(const int twice, half(once));
  return twice;
}
Status check_quarter(int value) {
  TRY(quarter(value));
  return {};
}
}  // namespace

TEST_CASE("TRY and TRY_ASSIGN pass the first error on unchanged") {
  CHECK(must(quarter(12)) == 3);
  CHECK(error_of(quarter(6)).value == "3");
  CHECK(check_quarter(4).has_value());
  CHECK(error_of(check_quarter(5)).expected == "an even number");
}
