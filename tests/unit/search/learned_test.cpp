// "learned" by itself, on made-up spaces.
#include "search/learned.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

using namespace tunerd;

namespace {

// Two templates of three parameters; the model likes "a" with small values, in truth "b" with large ones is best.
struct Made {
  std::vector<Candidate> space;
  std::vector<double> us;
  std::vector<std::size_t> order;

  explicit Made(std::int64_t values) {
    for (const char* source : {"a", "b"})
      for (std::int64_t x = 0; x < values; ++x)
        for (std::int64_t y = 0; y < values; ++y)
          for (std::int64_t z = 0; z < values; ++z) {
            Candidate candidate;
            candidate.variant = {source, {{"x", x}, {"y", y}, {"z", z}}};
            candidate.valid = true;
            const double last = static_cast<double>(values - 1), worse = *source == 'a' ? 1.0 : 0.0;
            const auto share = [last](std::int64_t value) { return static_cast<double>(value) / last; };
            candidate.predicted_us = 10 * std::exp(0.2 * (1 - worse) + 0.3 * share(x) + 0.1 * share(y));
            us.push_back(12 * std::exp(0.3 * worse + 0.6 * (1 - share(x)) + 0.4 * (1 - share(y)) + 0.2 * share(z)));
            space.push_back(std::move(candidate));
          }
    order.resize(space.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [this](std::size_t p, std::size_t q) { return space[p].predicted_us < space[q].predicted_us; });
  }
  std::unique_ptr<Strategy> strategy(std::uint64_t seed = 1, std::vector<Prior> priors = {}) const {
    return make_learned({&space, order, seed, std::move(priors)});
  }
  double best_us() const { return *std::min_element(us.begin(), us.end()); }
};

std::vector<std::size_t> first(const Made& made, Strategy& strategy, std::size_t count) {
  std::vector<std::size_t> out;
  while (out.size() < count) {
    const auto next = strategy.propose(1);
    if (next.empty()) break;
    out.push_back(next.front());
    strategy.observe({next.front(), true, made.us[next.front()]});
  }
  return out;
}

}  // namespace

TEST_CASE("learned tries everything once, however many are asked for at a time") {
  const Made made(5);
  const auto strategy = made.strategy();
  std::set<std::size_t> seen;
  for (;;) {
    const auto batch = strategy->propose(7);
    if (batch.empty()) break;
    for (const std::size_t index : batch) CHECK(seen.insert(index).second);
  }
  CHECK(seen.size() == made.space.size());
  CHECK(strategy->propose(1).empty());
}

TEST_CASE("learned finds the best where the model points the other way") {
  const Made made(7);
  const auto strategy = made.strategy();
  const auto tried = first(made, *strategy, 60);
  CHECK(std::any_of(tried.begin(), tried.end(), [&](std::size_t index) { return made.us[index] == made.best_us(); }));
}

TEST_CASE("learned is repeatable by its seed, and another seed tries others") {
  const Made made(6);
  const auto one = made.strategy(3), same = made.strategy(3), other = made.strategy(4);
  const auto walk = first(made, *one, 80);
  CHECK(walk == first(made, *same, 80));
  CHECK(walk != first(made, *other, 80));
}

TEST_CASE("learned proposes other variants while those it proposed still compile") {
  const Made made(6);
  const auto strategy = made.strategy();
  first(made, *strategy, 30);
  const auto ahead = strategy->propose(20);
  CHECK(std::set<std::size_t>(ahead.begin(), ahead.end()).size() == 20);
}

TEST_CASE("learned starts with the winners of other problems") {
  const Made made(5);
  const Variant winner{"b", {{"x", 4}, {"y", 4}, {"z", 0}}};
  const auto strategy = made.strategy(1, {{winner, 0.1, true}, {{"b", {{"x", 0}, {"y", 0}, {"z", 0}}}, 0.4, false}});
  CHECK(made.space[strategy->propose(1).front()].variant == winner);
}

TEST_CASE("learned leaves aside what priors say of templates and values that are not there, and what is no number") {
  const Made made(4);
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
  const auto strategy = made.strategy(1, {{{"gone", {{"x", 1}}}, 0.1, true},
                                          {{"a", {{"x", 99}, {"w", 2}}}, 0.1, true},
                                          {{"a", {{"x", 1}, {"y", 1}, {"z", 1}}}, nan, false},
                                          {{"b", {{"x", 1}, {"y", 1}, {"z", 1}}}, infinite, false}});
  CHECK(first(made, *strategy, 1000).size() == made.space.size());
}

TEST_CASE("learned goes elsewhere when a template never works, also with readings that are no time") {
  const Made made(6);
  const auto strategy = made.strategy();
  std::size_t failed = 0;
  for (int i = 0; i < 100; ++i) {
    const std::size_t index = strategy->propose(1).front();
    const bool works = made.space[index].variant.template_name == "b";
    failed += works ? 0 : 1;
    const double time_us = i % 2 == 0 ? 0 : std::numeric_limits<double>::infinity();
    strategy->observe({index, works || i % 3 == 0, works ? made.us[index] : time_us});
  }
  CHECK(failed < 50);
}

TEST_CASE("learned takes no notice of a candidate that is not its own, and learns of one it did not propose") {
  const Made made(5);
  const auto strategy = made.strategy();
  strategy->observe({1'000'000, true, 1.0});
  const std::size_t given = made.order[40];
  strategy->observe({given, true, made.us[given]});
  const auto rest = strategy->propose(1000);
  CHECK(rest.size() == made.space.size() - 1);
  CHECK(std::find(rest.begin(), rest.end(), given) == rest.end());
}

TEST_CASE("learned without a space, or with an empty one, proposes nothing") {
  const std::vector<Candidate> none;
  CHECK(make_learned({nullptr, {}, 1, {}})->propose(3).empty());
  CHECK(make_learned({&none, {}, 1, {}})->propose(3).empty());
}

TEST_CASE("learned takes less than 20 ms a proposal with 3,456 variants and 200 measured") {
  const Made made(12);
  const auto strategy = made.strategy();
  first(made, *strategy, 200);
  const auto started = std::chrono::steady_clock::now();
  first(made, *strategy, 20);
  const double each_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - started).count() / 20;
  MESSAGE("milliseconds a proposal: " << each_ms);
  CHECK(each_ms < 20);
}
