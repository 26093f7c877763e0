// The search against exhaustive truth: spaces recorded whole on an H200, replayed with noise and fixed seeds.
#include "recorded.h"

using namespace tunerd;
using namespace tunerd::testing;

namespace {

constexpr std::uint64_t kSeeds = 40;

struct Fixture {
  Catalog catalog = must(Catalog::load({templates_folder()}));
  std::vector<Recorded> all = load_all_recorded(catalog);

  // What the other problems of the op have taught, each by a search of its own.
  std::vector<Prior> taught(const Recorded& wanted) const {
    std::vector<Prior> priors;
    for (const Recorded& other : all) {
      if (other.op != wanted.op || other.key == wanted.key) continue;
      const Run run = search(other, "learned", 1, Budget{});
      priors.insert(priors.end(), run.learned.begin(), run.learned.end());
    }
    return priors;
  }
};

// Runs of one strategy over many problems.
struct Pool {
  std::vector<double> regret, share;  // served / best - 1; measured / usable ones of the recording

  double within(double bound) const {
    const auto count = std::count_if(regret.begin(), regret.end(), [bound](double value) { return value <= bound; });
    return static_cast<double>(count) / static_cast<double>(regret.size());
  }
  static double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  }
};

void run(const Recorded& recorded, const std::string& name, const std::vector<Prior>& priors, Pool& pool) {
  Pool own;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Run one = search(recorded, name, seed, Budget{}, priors);
    own.regret.push_back(one.regret);
    own.share.push_back(static_cast<double>(one.measured) / static_cast<double>(recorded.recorded));
  }
  MESSAGE(name << (priors.empty() ? " alone  " : " taught ") << recorded.key << ": of " << recorded.recorded
               << " measured " << Pool::median(own.share) << ", regret median " << Pool::median(own.regret) << " worst "
               << *std::max_element(own.regret.begin(), own.regret.end()) << ", within 2%: " << own.within(0.02));
  pool.regret.insert(pool.regret.end(), own.regret.begin(), own.regret.end());
  pool.share.insert(pool.share.end(), own.share.begin(), own.share.end());
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "at least eight large spaces are recorded of today's templates") {
  const auto large =
      std::count_if(all.begin(), all.end(), [](const Recorded& recorded) { return recorded.recorded >= 300; });
  INFO("record again: tests/gpu/record");
  CHECK(large >= 8);
}

TEST_CASE_FIXTURE(
    Fixture,
    "taught by other problems, 95 of 100 searches end within 2% of the best, having measured 5% of the space") {
  Pool taught, alone, model, random;
  for (const Recorded& recorded : all) {
    if (recorded.recorded < 300) continue;
    run(recorded, "learned", this->taught(recorded), taught);
    run(recorded, "learned", {}, alone);
    run(recorded, "model", {}, model);
    run(recorded, "random", {}, random);
  }
  CHECK(taught.within(0.02) >= 0.95);
  CHECK(Pool::median(taught.share) <= 0.05);
  // The first problem of an op has nothing to start from: it is as sure, but costs more.
  CHECK(alone.within(0.02) >= 0.95);
  CHECK(Pool::median(alone.share) <= 0.08);
  CHECK(taught.within(0.02) > model.within(0.02));
  CHECK(alone.within(0.02) > model.within(0.02));
  CHECK(model.within(0.02) > random.within(0.02));
}

TEST_CASE_FIXTURE(Fixture, "exhaustive measures all that may be tried, and what is not tried was not the best") {
  const Budget everything{.variants = 1'000'000, .seconds = 1e9, .sol_target = 1.0, .patience = 1'000'000};
  for (const Recorded& recorded : all) {
    const Run whole = search(recorded, "exhaustive", 1, everything);
    CAPTURE(recorded.key);
    CHECK(whole.measured == static_cast<std::int64_t>(recorded.usable));
    CHECK(whole.regret <= 0.01);
  }
}

TEST_CASE_FIXTURE(Fixture, "the same seed searches the same way") {
  const auto large = std::max_element(all.begin(), all.end(),
                                      [](const Recorded& a, const Recorded& b) { return a.usable < b.usable; });
  const Run first = search(*large, "learned", 5, Budget{}), second = search(*large, "learned", 5, Budget{});
  REQUIRE(first.learned.size() == second.learned.size());
  for (std::size_t i = 0; i < first.learned.size(); ++i) CHECK(first.learned[i].variant == second.learned[i].variant);
}
