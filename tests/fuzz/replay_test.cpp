// Every fuzz target without a fuzzer: its seeds, the corpus of inputs that once broke something, each prefix, and two
// seconds of random mutation. A crash or an abort fails the test and the seed of the random numbers is printed first.
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "targets.h"

using tunerd::fuzz::Target;

namespace {

constexpr std::size_t kMaxInput = 64 << 10;

// One to eight small changes: a bit, a byte, a run cut out, doubled or overwritten, a length-like value, another
// input's tail.
std::string mutated(std::string input, const std::vector<std::string>& pool, std::mt19937_64& random) {
  for (std::uint64_t changes = 1 + random() % 8; changes > 0; --changes) {
    const std::size_t at = input.empty() ? 0 : random() % input.size();
    const std::size_t run = input.empty() ? 0 : 1 + random() % std::min<std::size_t>(16, input.size() - at);
    switch (random() % 7) {
      case 0:
        if (!input.empty()) input[at] = static_cast<char>(input[at] ^ (1 << random() % 8));
        break;
      case 1:
        if (!input.empty()) input[at] = static_cast<char>(random());
        break;
      case 2:
        input.erase(at, run);
        break;
      case 3:
        input.insert(at, input.substr(at, run));
        break;
      case 4:
        for (std::size_t i = at; i < at + run; ++i) input[i] = "\x00\xff\x7f\x80\x9f\xbf\x1b\xc0"[random() % 8];
        break;
      case 5:
        input.insert(at, std::string(1 + random() % 40, "\x81\x9f\xa1\xbf[{("[random() % 7]));
        break;
      default: {
        const std::string& other = pool[random() % pool.size()];
        input = input.substr(0, at) + (other.empty() ? "" : other.substr(random() % other.size()));
      }
    }
    if (input.size() > kMaxInput) input.resize(kMaxInput);
  }
  return input;
}

std::vector<std::string> corpus(const Target& target) {
  std::vector<std::string> inputs = target.seeds();
  const std::filesystem::path folder = std::filesystem::path(TUNERD_SOURCE_DIR) / "tests/fuzz/corpus" / target.name;
  if (std::filesystem::exists(folder))
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::ifstream file(entry.path(), std::ios::binary);
      inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
  return inputs;
}

void replay(const Target& target) {
  std::vector<std::string> pool = corpus(target);
  REQUIRE_FALSE(pool.empty());
  for (const std::string& seed : target.seeds()) CHECK(target.run(seed));
  for (const std::string& input : pool) {
    target.run(input);
    const std::size_t step = 1 + input.size() / 512;
    for (std::size_t length = 0; length < input.size(); length += step)
      target.run(std::string_view(input).substr(0, length));
  }
  const std::uint64_t seed = std::random_device{}();
  std::printf("%s: random seed %llu\n", target.name, static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  std::mt19937_64 random(seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  std::size_t runs = 0;
  for (; std::chrono::steady_clock::now() < end; ++runs) {
    std::string input = mutated(pool[random() % pool.size()], pool, random);
    target.run(input);
    if (runs % 64 == 0 && pool.size() < 256) pool.push_back(std::move(input));
  }
  CHECK(runs > 0);
}

}  // namespace

TEST_CASE("no target crashes on its corpus, on any prefix of it, or on two seconds of mutations") {
  for (const Target& target : tunerd::fuzz::targets()) {
    SUBCASE(target.name) { replay(target); }
  }
}
