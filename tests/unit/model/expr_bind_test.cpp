#include <cstdlib>
#include <new>

#include "fixture.h"
#include "model/expr.h"

using namespace tunerd;
using namespace tunerd::testing;

namespace {
thread_local std::int64_t allocations = 0;

Expr parse(const std::string& text) {
  CAPTURE(text);
  return must(Expr::parse(text));
}
}  // namespace

// Counts what this program allocates; the test below needs to see that evaluation asks for nothing.
void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

TEST_CASE("evaluation allocates nothing: a client does it at every launch") {
  const Expr expr = parse("select(m > 64, ceildiv(m,128)*ceildiv(n,256), max(1, m % 7)) + min(n, -m) * 2 - !m");
  const Symbols symbols{{"m", 8192}, {"n", 4096}};
  const auto before = allocations;
  const auto value = expr.eval(symbols);
  const auto after = allocations;
  CHECK(after == before);
  CHECK(must(value) == 64 * 16 - 16384);
  CHECK(before > 0);
}

TEST_CASE("binding replaces known names and folds what became constant") {
  CHECK(parse("ceildiv(m,bm)*stages").bind({{"bm", 128}, {"stages", 4}}).text() == "ceildiv(m, 128) * 4");
  CHECK(parse("(bm/wm)*(bn/wn)*32").bind({{"bm", 128}, {"bn", 256}, {"wm", 64}, {"wn", 64}}) == Expr(256));
  CHECK(parse("m + 2*3").bind({}).text() == "m + 6");
  CHECK(parse("m").bind({{"n", 1}}) == parse("m"));
}

TEST_CASE("a select whose condition is known keeps only the branch taken") {
  CHECK(parse("select(splits==1, m*n, m/0)").bind({{"splits", 1}}).text() == "m * n");
  CHECK(parse("select(splits==1, 1/0, m)").bind({{"splits", 2}}).text() == "m");
  CHECK(parse("select(k, 1, 2)").bind({{"x", 1}}) == parse("select(k, 1, 2)"));
}

TEST_CASE("what cannot fold stays and fails when evaluated") {
  for (const char* text : {"1/0", "9223372036854775807+1", "m/(bm-bm)", "select(1/0,1,2)"}) {
    const Expr bound = parse(text).bind({{"bm", 64}, {"m", 1}});
    CAPTURE(bound.text());
    CHECK_FALSE(bound.is_constant());
    CHECK_FALSE(bound.eval({}).has_value());
  }
}

TEST_CASE("binding in steps gives what evaluating at once gives") {
  const char* texts[] = {"a+b*c-d",
                         "ceildiv(a*b, c) % d",
                         "select(a > b, c/(a-b), d)",
                         "min(a,-b)*max(c,!d)",
                         "a==b||c<=d&&a!=d",
                         "select(c, a, select(d, b, a-b))"};
  for (const char* text : texts)
    for (std::int64_t seed = 0; seed < 81; ++seed) {
      CAPTURE(text);
      CAPTURE(seed);
      const auto pick = [&](std::int64_t divisor) { return seed / divisor % 3 - 1; };
      const Symbols first{{"a", pick(1)}, {"c", pick(9)}}, second{{"b", pick(3)}, {"d", pick(27)}};
      Symbols all = first;
      all.merge(second);
      const auto once = parse(text).eval(all);
      const auto steps = parse(text).bind(first).bind(second);
      CHECK(once.has_value() == steps.is_constant());
      if (once) CHECK(steps == Expr(*once));
    }
}
