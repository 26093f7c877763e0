#include "search/strategy.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace tunerd;

namespace {

std::vector<std::size_t> walk(const std::string& name, const std::vector<std::size_t>& order, std::uint64_t seed,
                              std::size_t step) {
  auto strategy = make_strategy(name, {nullptr, order, seed, {}});
  REQUIRE(strategy.has_value());
  std::vector<std::size_t> all;
  for (;;) {
    const std::vector<std::size_t> proposed = (*strategy)->propose(step);
    CHECK(proposed.size() <= step);
    if (proposed.empty()) return all;
    all.insert(all.end(), proposed.begin(), proposed.end());
    for (const std::size_t candidate : proposed) (*strategy)->observe({candidate, true, 1.0});
  }
}

std::vector<std::size_t> ranked() {
  std::vector<std::size_t> order(100);
  std::iota(order.begin(), order.end(), std::size_t{7});
  std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace

TEST_CASE("every strategy proposes each candidate exactly once, however it is asked") {
  for (const char* name : {"exhaustive", "random", "model"}) {
    for (const std::size_t step : {1, 7, 1000}) {
      std::vector<std::size_t> all = walk(name, ranked(), 1, step);
      std::sort(all.begin(), all.end());
      std::vector<std::size_t> expected = ranked();
      std::sort(expected.begin(), expected.end());
      CHECK(all == expected);
    }
    CHECK(walk(name, {}, 1, 4).empty());
  }
}

TEST_CASE("model follows the ranking, exhaustive the space") {
  CHECK(walk("model", ranked(), 1, 3) == ranked());
  const std::vector<std::size_t> all = walk("exhaustive", ranked(), 1, 3);
  CHECK(std::is_sorted(all.begin(), all.end()));
}

TEST_CASE("random is repeatable by its seed") {
  CHECK(walk("random", ranked(), 42, 3) == walk("random", ranked(), 42, 10));
  CHECK(walk("random", ranked(), 42, 3) != walk("random", ranked(), 43, 3));
  CHECK(walk("random", ranked(), 42, 3) != ranked());
}

TEST_CASE("an unknown strategy suggests the nearest") {
  const auto made = make_strategy("randon", {nullptr, ranked(), 1, {}});
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().field == "strategy");
  CHECK(made.error().suggestion == "random");
}

TEST_CASE("a budget that allows nothing is an error that names the field") {
  CHECK(check_budget(Budget{}).has_value());
  const auto field = [](const Budget& budget) {
    const Status status = check_budget(budget);
    return status ? std::string("ok") : status.error().field;
  };
  CHECK(field({0, 30, 0.95, 12}) == "budget.variants");
  CHECK(field({-1, 30, 0.95, 12}) == "budget.variants");
  CHECK(field({24, 0, 0.95, 12}) == "budget.seconds");
  CHECK(field({24, -1, 0.95, 12}) == "budget.seconds");
  CHECK(field({24, std::nan(""), 0.95, 12}) == "budget.seconds");
  CHECK(field({24, INFINITY, 0.95, 12}) == "budget.seconds");
  CHECK(field({24, 30, 0, 12}) == "budget.sol_target");
  CHECK(field({24, 30, 1.01, 12}) == "budget.sol_target");
  CHECK(field({24, 30, std::nan(""), 12}) == "budget.sol_target");
  CHECK(field({24, 30, 1, 12}) == "ok");
  CHECK(field({24, 30, 0.95, 0}) == "budget.patience");
}

TEST_CASE("a search stops at the SOL target") {
  Stopping stopping({24, 30, 0.9, 12}, 90);
  stopping.observe({0, true, 101});
  CHECK(stopping.reason(1).empty());
  stopping.observe({1, true, 100});
  CHECK(stopping.reason(1) == "sol_target");
}

TEST_CASE("a search stops at its budget of variants, usable or not, and of seconds") {
  Stopping stopping({3, 30, 0.9, 12}, 1);
  stopping.observe({0, false, 0});
  stopping.observe({1, true, 100});
  CHECK(stopping.reason(29.9).empty());
  CHECK(stopping.reason(30) == "budget:seconds");
  stopping.observe({2, false, 0});
  CHECK(stopping.reason(0) == "budget:variants");
}

TEST_CASE("a search has converged after its patience without a gain of over one percent") {
  Stopping stopping({100, 30, 0.9, 3}, 1);
  stopping.observe({0, true, 100});
  stopping.observe({1, true, 99.5});  // under 1%
  stopping.observe({2, true, 97});    // a gain
  stopping.observe({3, true, 96.5});
  stopping.observe({4, false, 0});
  CHECK(stopping.reason(1).empty());
  stopping.observe({5, true, 200});
  CHECK(stopping.reason(1) == "converged");
}

TEST_CASE("a search that found nothing usable has not converged") {
  Stopping stopping({100, 30, 0.9, 3}, 1);
  for (std::size_t i = 0; i < 10; ++i) stopping.observe({i, false, 0});
  CHECK(stopping.reason(1).empty());
}

TEST_CASE("a time that is no time is no best") {
  Stopping stopping({100, 30, 0.9, 3}, 1);
  stopping.observe({0, true, 0});
  stopping.observe({1, true, -5});
  stopping.observe({2, true, std::nan("")});
  CHECK(stopping.reason(1).empty());
}
