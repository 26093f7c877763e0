#include "ctl/shapes.h"

#include "ctl/output.h"
#include "ctl/progress.h"
#include "fixture.h"

using namespace tunerd;
using namespace tunerd::ctl;
using namespace tunerd::ctl::test;

TEST_CASE("words become fields: integers as integers, the rest as text") {
  const Json fields = must(fields_from_words({"m=16", "k=4294967296", "dtype=bf16", "epilogue=none"}));
  CHECK(fields == Json{{"m", 16}, {"k", 4294967296}, {"dtype", "bf16"}, {"epilogue", "none"}});
  CHECK(must(fields_from_words({"m=16x"}))["m"] == "16x");
  CHECK(must(fields_from_words({"m=99999999999999999999"}))["m"] == "99999999999999999999");
  CHECK(must(problem_from_words("gemm", {"m=1"})) == Json{{"op", "gemm"}, {"m", 1}});
}

TEST_CASE("a word without '=', a name given twice, a second op are errors that name them") {
  for (const auto& [words, value] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"m"}, "m"}, {{"=3"}, "=3"}, {{"m=1", "m=2"}, "2"}}) {
    const auto fields = fields_from_words(words);
    REQUIRE_FALSE(fields);
    CHECK(fields.error().value == value);
  }
  CHECK_FALSE(problem_from_words("gemm", {"op=rmsnorm"}));
}

TEST_CASE("shape files: an object with problems, a list, one object, JSON lines") {
  const std::string one = R"({"op":"gemm","m":1})", two = R"({"op":"gemm","m":2,"from":"a model"})";
  for (const std::string& text : {R"({"about":"x","problems":[)" + one + "," + two + "]}", "[" + one + "," + two + "]",
                                  one + "\n\n" + two + "\n"}) {
    const auto problems = must(parse_shapes(text, "shapes.json"));
    REQUIRE(problems.size() == 2);
    CHECK(problems[1]["m"] == 2);
    CHECK(describe(problems[1]) == "gemm m=2");
  }
  CHECK(must(parse_shapes(one, "shapes.json")).size() == 1);
}

TEST_CASE("broken shape files are errors that name the file and the place") {
  const auto error_of = [](const std::string& text) {
    const auto problems = parse_shapes(text, "shapes.json");
    REQUIRE_FALSE(problems);
    CHECK(problems.error().code == Code::invalid_argument);
    return problems.error().text();
  };
  CHECK(error_of("{\"op\":\"gemm\"}\n{oops\n").find("shapes.json:2") != std::string::npos);
  CHECK(error_of("[{\"op\":\"gemm\"},{\"m\":1}]").find("problems[1].op") != std::string::npos);
  CHECK(error_of("[{\"op\":\"gemm\"},7]").find("problems[1]") != std::string::npos);
  CHECK(error_of("[{\"op\":7}]").find("problems[0].op") != std::string::npos);
  CHECK(error_of("{\"problems\":{}}").find("problems") != std::string::npos);
  CHECK(error_of("[]").find("at least one") != std::string::npos);
  CHECK(error_of("").find("shapes.json") != std::string::npos);
  CHECK_FALSE(read_shapes("/nonexistent/shapes.json"));
}

TEST_CASE("tables are as wide as their cells, counted in characters, numbers set right") {
  Table table({"a", "µs"}, {false, true});
  table.add({"long µ", "1.5"});
  table.add({"b", "10.25"});
  std::ostringstream out;
  table.print(out);
  CHECK(out.str() == "a          µs\nlong µ    1.5\nb       10.25\n");
}

TEST_CASE("times, sizes and fractions are written short, and nothing is written for what is not known") {
  CHECK(format_us(0) == "-");
  CHECK(format_us(0.1746) == "0.175");
  CHECK(format_us(12.345) == "12.35");
  CHECK(format_us(1234.5) == "1234.5");
  CHECK(format_fraction(0) == "-");
  CHECK(format_fraction(0.876) == "0.88");
  CHECK(format_bytes(999) == "999 B");
  CHECK(format_bytes(138'900'000) == "138.9 MB");
  CHECK(format_seconds(59) == "59s");
  CHECK(format_seconds(192) == "3m12s");
  CHECK(format_seconds(7500) == "2h05m");
}

TEST_CASE("the bar shows how many are done and an ETA from the rate so far; without a terminal there are lines") {
  std::ostringstream err;
  std::streambuf* const real = std::cerr.rdbuf(err.rdbuf());
  {
    Progress bar(4, true);
    bar.step("hidden");
    CHECK(bar.bar(10) == "[#######.......................] 1/4  10s  ETA 30s");
    Progress lines(2, false);
    lines.step("first");
    lines.step("second");
  }
  std::cerr.rdbuf(real);
  CHECK(err.str().find("hidden") == std::string::npos);
  CHECK(err.str().find("[1/2] first\n[2/2] second\n") != std::string::npos);
}
