#include "model/expr.h"

#include "fixture.h"

using namespace tunerd;
using namespace tunerd::testing;

namespace {

std::int64_t value(const std::string& text, const Symbols& symbols = {}) {
  CAPTURE(text);
  return must(must(Expr::parse(text)).eval(symbols));
}
Error fault(const std::string& text, const Symbols& symbols = {}) {
  CAPTURE(text);
  return error_of(must(Expr::parse(text)).eval(symbols));
}
Error syntax(const std::string& text) {
  CAPTURE(text);
  return error_of(Expr::parse(text));
}
std::string repeated(const std::string& piece, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += piece;
  return out;
}

}  // namespace

TEST_CASE("operators bind as in C and group to the left") {
  CHECK(value("2+3*4") == 14);
  CHECK(value("(2+3)*4") == 20);
  CHECK(value("100-10-1") == 89);
  CHECK(value("100/10/2") == 5);
  CHECK(value("17%5*2") == 4);
  CHECK(value("1+1==2") == 1);
  CHECK(value("1<2==1") == 1);
  CHECK(value("3>2>1") == 0);
  CHECK(value("1||0&&0") == 1);
  CHECK(value("0==1||2!=2&&1") == 0);
  CHECK(value("2*3<=6&&6>=2*3") == 1);
}

TEST_CASE("prefix operators bind tighter than any binary one") {
  CHECK(value("-2+5") == 3);
  CHECK(value("-7%4") == -3);
  CHECK(value("!0+1") == 2);
  CHECK(value("!(0+1)") == 0);
  CHECK(value("- -3") == 3);
  CHECK(value("--3") == 3);
  CHECK(value("!!5") == 1);
  CHECK(value("2--3") == 5);
  CHECK(value("2-3") == -1);
  CHECK(value("-x", {{"x", 4}}) == -4);
  CHECK(value("1!=2") == 1);
}

TEST_CASE("division truncates; ceildiv rounds up for every pair of signs") {
  CHECK(value("7/2") == 3);
  CHECK(value("-7/2") == -3);
  CHECK(value("-7%2") == -1);
  CHECK(value("7%-2") == 1);
  CHECK(value("ceildiv(7,2)") == 4);
  CHECK(value("ceildiv(8,2)") == 4);
  CHECK(value("ceildiv(-7,2)") == -3);
  CHECK(value("ceildiv(7,-2)") == -3);
  CHECK(value("ceildiv(-7,-2)") == 4);
  CHECK(value("ceildiv(0,5)") == 0);
}

TEST_CASE("functions, names and spaces") {
  const Symbols symbols{{"m", 100}, {"bm", 64}, {"_x2", 5}};
  CHECK(value("  ceildiv( m , bm )*_x2 ", symbols) == 10);
  CHECK(value("min(m,bm)+max(m,bm)", symbols) == 164);
  CHECK(value("select(m > bm, 1, 2)", symbols) == 1);
  CHECK(value("select(m < bm, 1, 2)", symbols) == 2);
  CHECK(value("maximum - minimum", {{"maximum", 3}, {"minimum", 1}}) == 2);
}

TEST_CASE("every overflow is an error, never a wrapped value") {
  for (const char* text : {"9223372036854775807+1", "-9223372036854775808-1", "9223372036854775807*2",
                           "3037000500*3037000500", "-9223372036854775808/-1", "ceildiv(-9223372036854775808,-1)", "-x",
                           "-(-9223372036854775808)", "x*-1", "0-x"}) {
    const Error error = fault(text, {{"x", INT64_MIN}});
    CHECK(error.message == "Overflow");
    CHECK(error.expected == "a value within 64 bits");
  }
  CHECK(value("9223372036854775807") == INT64_MAX);
  CHECK(value("-9223372036854775808") == INT64_MIN);
  CHECK(value("-9223372036854775808 % -1") == 0);
  CHECK(value("3037000499*3037000499") == 3037000499LL * 3037000499LL);
  CHECK(value("ceildiv(9223372036854775807,2)") == 4611686018427387904);
}

TEST_CASE("division by zero is an error for all three divisions") {
  for (const char* text : {"1/0", "1%0", "ceildiv(1,0)", "0/0", "m/(k-k)"}) {
    const Error error = fault(text, {{"m", 1}, {"k", 3}});
    CHECK(error.message == "Division by zero");
    CHECK(error.field == "expression");
  }
}

TEST_CASE("an unknown name is named, with the nearest known one") {
  const Error error = fault("block_m*2", {{"blockm", 4}, {"n", 1}});
  CHECK(error.message == "Unknown name block_m in block_m * 2");
  CHECK(error.field == "block_m");
  CHECK(error.suggestion == "blockm");
}

TEST_CASE("select ignores an error of the branch not taken, and only that") {
  CHECK(value("select(1, 5, 1/0)") == 5);
  CHECK(value("select(0, 1/0, 6)") == 6);
  CHECK(value("select(k==0, 0, m/k)", {{"m", 8}, {"k", 0}}) == 0);
  CHECK(value("select(1, 5, nobody)") == 5);
  CHECK(value("select(1, select(0, 9223372036854775807+1, 7), 1/0) + 1") == 8);
  CHECK(fault("select(1, 1/0, 5)").message == "Division by zero");
  CHECK(fault("select(1/0, 1, 1)").message == "Division by zero");
}

TEST_CASE("&& and || evaluate both sides, so an error on either is an error") {
  CHECK(fault("0 && 1/0").message == "Division by zero");
  CHECK(fault("1 || 1/0").message == "Division by zero");
  CHECK(value("5 && -3") == 1);
  CHECK(value("0 || -3") == 1);
}

TEST_CASE("bad syntax is an error that gives the position and what could stand there") {
  const struct {
    const char* text;
    const char* expected;
  } cases[] = {{"", "a value at position 1"},
               {"1 +", "a value at position 4"},
               {"1 2", "an operator or the end at position 3"},
               {"a = b", "an operator or the end at position 3"},
               {"(1", "')' at position 3"},
               {"1)", "an operator or the end at position 2"},
               {"Bm", "a number, a name or '(' at position 1"},
               {"a & b", "an operator or the end at position 3"},
               {"1.5", "an integer at position 2"},
               {"0x10", "an integer at position 2"},
               {"12m", "an integer at position 3"},
               {"9223372036854775808", "a number within 64 bits at position 1"},
               {"-9223372036854775809", "a number within 64 bits at position 1"},
               {"min(1)", "',' (min takes 2 values) at position 6"},
               {"min(1,2,3)", "')' (min takes 2 values) at position 8"},
               {"select(1,2)", "',' (select takes 3 values) at position 11"},
               {"* 2", "a number, a name or '(' at position 1"},
               {"a \xc3\xa9", "an operator or the end at position 3"}};
  for (const auto& row : cases) {
    const Error error = syntax(row.text);
    CHECK(error.expected == row.expected);
    CHECK(error.message == "Cannot read the expression");
  }
}

TEST_CASE("a function that does not exist suggests the nearest, an operator word is no name") {
  CHECK(syntax("cieldiv(m,2)").suggestion == "ceildiv");
  CHECK(syntax("pow(m,2)").expected.find("one of the functions ceildiv, min, max, select") == 0);
  CHECK_FALSE(Expr::parse("min + 1").has_value());
  CHECK_FALSE(Expr::parse("neg").has_value());
  CHECK_FALSE(Expr::parse("neg(1)").has_value());
}

TEST_CASE("text, tokens, pending operands, names and nesting are bounded") {
  CHECK(Expr::parse("1" + std::string(4095, ' ')).has_value());
  CHECK(syntax("1" + std::string(4096, ' ')).expected.find("at most 4096 characters") != std::string::npos);
  CHECK(Expr::parse("1" + repeated("+1", 127)).has_value());
  CHECK(syntax("1" + repeated("+1", 128)).expected.find("at most 256 tokens") == 0);
  CHECK(Expr::parse(repeated("1+(", 63) + "1" + repeated(")", 63)).has_value());
  CHECK(syntax(repeated("1+(", 64) + "1" + repeated(")", 64)).expected == "at most 64 pending operands");
  CHECK(Expr::parse(std::string(64, 'a')).has_value());
  CHECK(syntax(std::string(65, 'a')).expected == "a name of at most 64 characters at position 1");
  CHECK(Expr::parse(repeated("(", 255) + "1" + repeated(")", 255)).has_value());
}

TEST_CASE("nesting without end is an error, not a stack overflow") {
  for (const std::string open : {"(", "!", "- ", "min(1,", "1*("}) {
    CAPTURE(open);
    CHECK_FALSE(Expr::parse(repeated(open, 4000 / static_cast<int>(open.size()))).has_value());
  }
  CHECK(syntax(repeated("(", 2000) + "1" + repeated(")", 2000)).expected.find("nesting of at most 256") == 0);
}

TEST_CASE("a manifest's expression is an integer or text; the error names the manifest's field") {
  CHECK(must(Expr::from_manifest(Json(128), "f.smem")).is_constant());
  CHECK(must(must(Expr::from_manifest(Json("2*m"), "f.smem")).eval({{"m", 3}})) == 6);
  CHECK(error_of(Expr::from_manifest(Json("2*"), "f.smem")).field == "f.smem");
  CHECK(error_of(Expr::from_manifest(Json(1.5), "f.smem")).value == "1.5");
  CHECK(error_of(Expr::from_manifest(Json(UINT64_MAX), "f.smem")).field == "f.smem");
  CHECK(error_of(Expr::from_manifest(Json::array(), "f.smem")).expected == "an integer or an expression in a string");
}

TEST_CASE("names are each given once, sorted") {
  CHECK(must(Expr::parse("n*m + ceildiv(m, bm) - 4")).names() == std::vector<std::string>{"bm", "m", "n"});
  CHECK(Expr(3).names().empty());
}

TEST_CASE("symbols overwrite by name, keep their order, and merge with the other's values") {
  Symbols symbols{{"b", 1}, {"a", 2}};
  symbols.set("b", 3);
  symbols.merge({{"a", 5}, {"c", 6}});
  CHECK(symbols == Symbols{{"b", 3}, {"a", 5}, {"c", 6}});
  CHECK(symbols.find("d") == nullptr);
}
