// The search where the recordings are bent: half of a space gone, a cost model that is off, other depths of compiling.
#include "recorded.h"

using namespace tunerd;
using namespace tunerd::testing;

namespace {

struct Large {
  Catalog catalog = must(Catalog::load({templates_folder()}));
  std::vector<Recorded> all = load_all_recorded(catalog);

  Large() {
    std::erase_if(all, [](const Recorded& recorded) { return recorded.recorded < 300; });
    REQUIRE_FALSE(all.empty());
  }
};

// Every second variant by chance; the best is that of those left.
Recorded half(Recorded recorded, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<std::size_t> kept;
  recorded.best_us = 0;
  for (const std::size_t index : recorded.order) {
    if (generator() % 2 == 0) continue;
    kept.push_back(index);
    const double us = recorded.us[index];
    if (us > 0 && (recorded.best_us == 0 || us < recorded.best_us)) recorded.best_us = us;
  }
  recorded.order = std::move(kept);
  return recorded;
}

// The model errs by a factor of its own for each value of each parameter.
Recorded skewed(Recorded recorded, double deviation, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> error(0.0, deviation);
  std::map<std::string, double> errors;
  for (const std::size_t index : recorded.order) {
    Candidate& candidate = recorded.space[index];
    for (const auto& [name, value] : candidate.variant.params) {
      const std::string key = candidate.variant.template_name + "/" + name + "=" + std::to_string(value);
      if (!errors.contains(key)) errors[key] = error(generator);
      candidate.predicted_us *= std::exp(errors[key]);
    }
  }
  std::stable_sort(recorded.order.begin(), recorded.order.end(), [&](std::size_t a, std::size_t b) {
    return recorded.space[a].predicted_us < recorded.space[b].predicted_us;
  });
  return recorded;
}

struct Share {
  std::size_t within = 0, runs = 0;
  double value() const { return static_cast<double>(within) / static_cast<double>(runs); }
};

void add(Share& share, const Recorded& recorded, std::uint64_t seed, std::size_t ahead = 20) {
  share.within += search(recorded, "learned", seed, Budget{}, {}, ahead).regret <= 0.02 ? 1 : 0;
  ++share.runs;
}

}  // namespace

TEST_CASE_FIXTURE(Large, "95 of 100 searches end within 2% of the best also when half of the variants are missing") {
  Share share;
  for (const Recorded& recorded : all)
    for (std::uint64_t seed = 1; seed <= 10; ++seed) add(share, half(recorded, seed), seed);
  MESSAGE("within 2%: " << share.value());
  CHECK(share.value() >= 0.95);
}

TEST_CASE_FIXTURE(Large, "95 of 100 searches end within 2% of the best also when the model is off by 15% a parameter") {
  Share share;
  for (const Recorded& recorded : all)
    for (std::uint64_t seed = 1; seed <= 10; ++seed) add(share, skewed(recorded, 0.15, seed), seed);
  MESSAGE("within 2%: " << share.value());
  CHECK(share.value() >= 0.95);
}

TEST_CASE_FIXTURE(Large, "95 of 100 searches end within 2% of the best however many compile ahead") {
  for (const std::size_t ahead : {1, 8, 32}) {
    Share share;
    for (const Recorded& recorded : all)
      for (std::uint64_t seed = 1; seed <= 10; ++seed) add(share, recorded, seed, ahead);
    MESSAGE(ahead << " ahead, within 2%: " << share.value());
    CHECK(share.value() >= 0.95);
  }
}
