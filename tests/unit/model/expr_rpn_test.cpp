#include "fixture.h"
#include "model/expr.h"

using namespace tunerd;
using namespace tunerd::testing;

namespace {

// A small generator of its own: the same expressions on every machine.
struct Random {
  std::uint64_t state;
  std::uint64_t below(std::uint64_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % bound;
  }
};

void grow(Random& random, int depth, Json& out) {
  static const char* const kBinary[] = {"+",  "-", "*",  "/",  "%",  "==",      "!=",  "<",
                                        "<=", ">", ">=", "&&", "||", "ceildiv", "min", "max"};
  switch (depth == 0 ? random.below(2) : random.below(6)) {
    case 0:
      out.push_back(static_cast<std::int64_t>(random.below(20)) - 10);
      break;
    case 1:
      out.push_back(std::string(1, static_cast<char>('a' + random.below(4))));
      break;
    case 2:
      grow(random, depth - 1, out);
      out.push_back(random.below(2) ? "neg" : "!");
      break;
    case 3:
      for (int i = 0; i < 3; ++i) grow(random, depth - 1, out);
      out.push_back("select");
      break;
    default:
      for (int i = 0; i < 2; ++i) grow(random, depth - 1, out);
      out.push_back(kBinary[random.below(std::size(kBinary))]);
  }
}

}  // namespace

TEST_CASE("RPN is the list of values and operator words in order of evaluation") {
  CHECK(must(Expr::parse("ceildiv(m,128)*-n")).rpn() == Json::parse(R"(["m",128,"ceildiv","n","neg","*"])"));
  CHECK(must(Expr::parse("select(!a, 1, 2)")).rpn() == Json::parse(R"(["a","!",1,2,"select"])"));
  CHECK(Expr(-7).rpn() == Json::parse("[-7]"));
}

TEST_CASE("a bare integer is RPN too") { CHECK(must(Expr::from_rpn(Json(42))) == Expr(42)); }

TEST_CASE("any expression comes back equal from RPN and from its infix text, bytes of CBOR between") {
  Random random{1};
  int tried = 0;
  for (int round = 0; round < 3000; ++round) {
    Json rpn = Json::array();
    grow(random, 4, rpn);
    const auto expr = Expr::from_rpn(rpn);
    if (!expr) continue;  // more than 256 tokens or 64 pending
    ++tried;
    CAPTURE(rpn.dump());
    CHECK(expr->rpn() == rpn);
    CHECK(must(Expr::from_rpn(Json::from_cbor(Json::to_cbor(expr->rpn())))) == *expr);
    CAPTURE(expr->text());
    CHECK(must(Expr::parse(expr->text())) == *expr);
  }
  CHECK(tried > 2500);
}

TEST_CASE("text keeps the extreme constant and the grouping of equal precedence") {
  for (const char* text :
       {"a - (b - c)", "a - b - c", "a / (b * c)", "--a", "-!-a", "-(-5)", "-(5)", "-9223372036854775808", "(-5) + a",
        "!(a == b)", "(a || b) && c", "-(a + b) * c", "a - (-5)"}) {
    CAPTURE(text);
    CHECK(must(Expr::parse(text)).text() == text);
  }
}

TEST_CASE("a chain of 255 prefix operators, as RPN may bring it, still has a text that reads back") {
  Json rpn = Json::array({"m"});
  for (int i = 0; i < 255; ++i) rpn.push_back(i % 2 ? "neg" : "!");
  const Expr expr = must(Expr::from_rpn(rpn));
  CHECK(must(Expr::parse(expr.text())) == expr);
}

TEST_CASE("hostile RPN is refused: too few operands, leftovers, depth, length, types, words") {
  const auto refused = [](const Json& rpn) {
    CAPTURE(rpn.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 100));
    const Error error = error_of(Expr::from_rpn(rpn));
    CHECK(error.code == Code::invalid_argument);
    CHECK_FALSE(error.expected.empty());
    CHECK(error.text().size() < 400);
  };
  for (const char* text : {R"([])",
                           R"(["+"])",
                           R"([1,"+"])",
                           R"([1,2])",
                           R"([1,2,"select"])",
                           R"([1,2,3,"select","+"])",
                           R"(["neg"])",
                           R"([1,"+",2])",
                           R"([1.5])",
                           R"([null])",
                           R"([[1]])",
                           R"([{}])",
                           R"([true])",
                           R"(["M"])",
                           R"([""])",
                           R"(["a b"])",
                           R"(["1a"])",
                           R"(["pow"])",
                           R"("m")",
                           R"({})",
                           R"(null)",
                           R"([18446744073709551615])",
                           R"(9223372036854775808)"}) {
    if (std::string(text) == R"(["pow"])") {  // an unknown word can only be a name
      CHECK(must(Expr::from_rpn(Json::parse(text))).names() == std::vector<std::string>{"pow"});
      continue;
    }
    refused(Json::parse(text));
  }
  refused(Json::array({std::string(65, 'a')}));
  refused(Json::array({"a\xff"}));
  Json deep = Json::array(), lengthy = Json::array({1});
  for (int i = 0; i < 65; ++i) deep.push_back(1);
  for (int i = 0; i < 64; ++i) deep.push_back("+");
  for (int i = 0; i < 256; ++i) lengthy.push_back("neg");
  refused(deep);
  refused(lengthy);
  refused(Json(std::vector<int>(1'000'000, 1)));
}

TEST_CASE("the deepest RPN that is accepted evaluates within the fixed stack") {
  Json rpn = Json::array();
  for (int i = 0; i < 64; ++i) rpn.push_back(1);
  for (int i = 0; i < 63; ++i) rpn.push_back("+");
  CHECK(must(must(Expr::from_rpn(rpn)).eval({})) == 64);
}

TEST_CASE("rules are read from a manifest, travel as RPN and come back equal") {
  const Json json = Json::parse(R"([{"if":"k % 8 == 0","reason":"k by 8"},{"if":1,"reason":"always","//":"note"}])");
  const auto rules = must(rules_from_json(&json, "t.validity"));
  REQUIRE(rules.size() == 2);
  CHECK(rules[0].reason == "k by 8");
  CHECK(must(rules[0].expr.eval({{"k", 12}})) == 0);
  CHECK(must(rules_from_rpn(rules_to_json(rules))) == rules);
  CHECK(must(rules_from_json(nullptr, "t.validity")).empty());
}

TEST_CASE("a bad rule is an error that names its place in the list") {
  const auto error = [](const char* text) {
    const Json json = Json::parse(text);
    return error_of(rules_from_json(&json, "t.validity"));
  };
  CHECK(error(R"([{"if":"1","reason":"a"},{"if":"1 +","reason":"b"}])").field == "t.validity[1].if");
  CHECK(error(R"([{"if":"1"}])").field == "t.validity[0].reason");
  CHECK(error(R"([{"reason":"a"}])").field == "t.validity[0].if");
  CHECK(error(R"([{"if":"1","reason":"a","raeson":"b"}])").suggestion == "reason");
  CHECK(error(R"({"if":"1"})").field == "t.validity");
  CHECK(error_of(rules_from_rpn(Json(5))).expected == "a list of at most 256 checks");
  CHECK(error_of(rules_from_rpn(Json::parse(R"([{"if":["+"],"reason":"a"}])"))).expected ==
        "an operand for every operator");
}
