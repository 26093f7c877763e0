#include "search/nearest.h"

#include <doctest/doctest.h>

using namespace tunerd;

namespace {

Problem sized(std::int64_t m, std::int64_t n) {
  Problem problem;
  problem.op = "gemm";
  problem.dims = {{"m", m}, {"n", n}};
  return problem;
}

}  // namespace

TEST_CASE("the nearest problem is the one by the smallest ratio, summed over dimensions") {
  const std::vector<Problem> tuned{sized(1, 4096), sized(64, 4096), sized(48, 8192), sized(60, 4096)};
  CHECK(by_distance(sized(56, 4096), tuned) == std::vector<std::size_t>{3, 1, 2, 0});
}

TEST_CASE("twice and half are equally far, and the lower index comes first") {
  CHECK(by_distance(sized(64, 64), {sized(128, 64), sized(32, 64), sized(64, 32)}) ==
        std::vector<std::size_t>{0, 1, 2});
}

TEST_CASE("nothing tuned gives nothing near") { CHECK(by_distance(sized(1, 1), {}).empty()); }

TEST_CASE("a problem that lacks a dimension comes last rather than near") {
  Problem other = sized(64, 64);
  other.dims.erase("n");
  CHECK(by_distance(sized(64, 64), {other, sized(1, 1)}) == std::vector<std::size_t>{1, 0});
}
