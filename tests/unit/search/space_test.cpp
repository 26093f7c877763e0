#include "search/space.h"

#include <algorithm>
#include <chrono>

#include "../catalog/template_folder.h"

using namespace tunerd;
using namespace tunerd::testing;

namespace {

struct Fixture {
  TemporaryFolder folder;
  Catalog catalog;
  const OpEntry* entry = nullptr;

  Fixture() {
    write_gemm(folder);
    load();
  }
  void load() {
    catalog = must(Catalog::load({folder.path()}));
    entry = must(catalog.op("gemm"));
  }
  Problem problem(std::int64_t m, std::int64_t n, std::int64_t k, const char* epilogue = "none") const {
    return gemm(entry->op, m, n, k, epilogue);
  }
  std::vector<Candidate> space(const Problem& wanted, const DeviceSpec& device = h200()) const {
    return must(enumerate_space(*entry, wanted, device));
  }
  static const Candidate& find(const std::vector<Candidate>& space, const std::string& text) {
    const auto found =
        std::find_if(space.begin(), space.end(), [&](const Candidate& c) { return c.variant.text() == text; });
    REQUIRE(found != space.end());
    return *found;
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "every combination of every template is in the space once") {
  const std::vector<Candidate> all = space(problem(4096, 4096, 4096));
  CHECK(all.size() == 2 * 3 * 2 * 3 * 2 * 2 + 2 * 2 * 2 * 2 + 2 + 1);
  std::vector<std::string> texts;
  for (const Candidate& candidate : all) texts.push_back(candidate.variant.text());
  std::sort(texts.begin(), texts.end());
  CHECK(std::adjacent_find(texts.begin(), texts.end()) == texts.end());
}

TEST_CASE_FIXTURE(Fixture, "an invalid candidate says why, a valid one agrees with check_variant") {
  const Problem wanted = problem(4096, 4096, 4096);
  for (const Candidate& candidate : space(wanted)) {
    CAPTURE(candidate.variant.text());
    const Status status = check_variant(candidate.source->manifest, entry->op, candidate.variant, wanted, h200());
    CHECK(candidate.valid == candidate.reason.empty());
    if (candidate.valid) CHECK(status.has_value());
    if (!status) CHECK(candidate.reason == status.error().message);
  }
}

TEST_CASE_FIXTURE(Fixture, "a size that breaks a variant's validity is its reason") {
  const std::vector<Candidate> all = space(problem(64, 64, 1004));
  const Candidate& mma = find(all, "gemm_mma{bk=32,bm=64,bn=64,stages=2,wm=32,wn=32}");
  CHECK_FALSE(mma.valid);
  CHECK(mma.reason == "rows must be multiples of 16 bytes (k=1004 ld_w=1004 ld_x=1004)");
  CHECK(find(all, "gemm_simple{}").valid);
}

TEST_CASE_FIXTURE(Fixture, "a template that cannot serve the problem at all appears once, with no parameters") {
  const Candidate arch = find(space(problem(64, 64, 64), h200("sm_89", 89)), "gemm_tma{}");
  CHECK_FALSE(arch.valid);
  CHECK(arch.reason.find("sm_90a") != std::string::npos);
  const Candidate attribute = find(space(problem(64, 64, 64, "gelu")), "gemm_tma{}");
  CHECK(attribute.reason.find("gelu") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "a reduction in no fixed order is valid only where the problem allows it") {
  Problem wanted = problem(64, 64, 64);
  const Candidate refused = find(space(wanted), "gemm_split{splits=4}");
  CHECK_FALSE(refused.valid);
  CHECK(refused.reason == "atomic accumulation (splits=4)");
  CHECK(find(space(wanted), "gemm_split{splits=1}").valid);
  wanted.allow_nondeterministic = true;
  CHECK(find(space(wanted), "gemm_split{splits=4}").valid);
}

TEST_CASE_FIXTURE(Fixture, "a grid that cannot be launched makes a variant invalid here") {
  Json manifest = gemm_split();
  manifest["launch"]["grid"] = {1, "n"};
  folder.write_json("gemm/gemm_split.json", manifest);
  load();
  CHECK(find(space(problem(1, 65535, 8)), "gemm_split{splits=1}").valid);
  const Candidate refused = find(space(problem(1, 65536, 8)), "gemm_split{splits=1}");
  CHECK_FALSE(refused.valid);
  CHECK(refused.reason.find("launch.grid[1]") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "a space past its limit is an error that names the template") {
  const Result<std::vector<Candidate>> refused = enumerate_space(*entry, problem(64, 64, 64), h200(), 100);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().field == "gemm_mma.params");
  CHECK_FALSE(enumerate_space(*entry, problem(64, 64, 64), h200(), 0).has_value());
  Json huge = gemm_mma();
  for (int p = 0; p < 10; ++p) {
    for (int v = 0; v < 256; ++v) huge["params"]["p" + std::to_string(p)].push_back(v);
  }
  folder.write_json("gemm/gemm_mma.json", huge);
  load();
  CHECK(enumerate_space(*entry, problem(64, 64, 64), h200()).error().field == "gemm_mma.params");
}

TEST_CASE_FIXTURE(Fixture, "ranking orders the valid candidates by predicted time") {
  const Problem wanted = problem(4096, 4096, 4096);
  std::vector<Candidate> all = space(wanted);
  const auto valid = std::count_if(all.begin(), all.end(), [](const Candidate& c) { return c.valid; });
  const std::vector<std::size_t> order = must(rank_space(all, *entry, wanted, h200()));
  CHECK(static_cast<std::ptrdiff_t>(order.size()) == valid);
  for (std::size_t i = 0; i < order.size(); ++i) {
    CHECK(all[order[i]].valid);
    CHECK(all[order[i]].predicted_us > 0);
    if (i > 0) CHECK(all[order[i - 1]].predicted_us <= all[order[i]].predicted_us);
  }
  CHECK(all[order.back()].variant.template_name == "gemm_simple");
}

TEST_CASE_FIXTURE(Fixture, "equal predictions are ordered by the variant's text") {
  Json flat = gemm_tma();
  flat["cost"] = {{"tiles", 132}, {"tile_bytes", 1}};
  folder.write_json("gemm/gemm_tma.json", flat);
  load();
  const Problem wanted = problem(4096, 4096, 4096);
  std::vector<Candidate> all = space(wanted);
  const std::vector<std::size_t> order = must(rank_space(all, *entry, wanted, h200()));
  std::size_t ties = 0;
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (all[order[i - 1]].predicted_us != all[order[i]].predicted_us) continue;
    ++ties;
    CHECK(all[order[i - 1]].variant.text() < all[order[i]].variant.text());
  }
  CHECK(ties > 0);
}

TEST_CASE_FIXTURE(Fixture, "a cost that fails puts only its own variants out, with the field as reason") {
  Json broken = gemm_tma();
  broken["cost"] = {{"tiles", "m / (bm - 64)"}};
  folder.write_json("gemm/gemm_tma.json", broken);
  load();
  const Problem wanted = problem(4096, 4096, 4096);
  std::vector<Candidate> all = space(wanted);
  must(rank_space(all, *entry, wanted, h200()));
  const Candidate& out = find(all, "gemm_tma{bk=32,bm=64,bn=128,cluster_m=1}");
  CHECK_FALSE(out.valid);
  CHECK(out.reason.find("gemm_tma.cost.tiles") != std::string::npos);
  CHECK(find(all, "gemm_tma{bk=32,bm=128,bn=128,cluster_m=1}").valid);
}

TEST_CASE_FIXTURE(Fixture, "the fallback serves every shape") {
  for (const std::int64_t size : {std::int64_t{1}, std::int64_t{7}, std::int64_t{4096}, std::int64_t{1} << 20}) {
    const Candidate candidate = must(fallback_candidate(*entry, problem(size, 3, 5), h200()));
    CHECK(candidate.valid);
    CHECK(candidate.variant.text() == "gemm_simple{}");
    CHECK(candidate.predicted_us > 0);
  }
}

TEST_CASE_FIXTURE(Fixture, "an op without a fallback, or with one for other devices, is an error that says so") {
  Json manifest = gemm_simple();
  manifest["arch"] = {{"min", "sm_100"}};
  folder.write_json("gemm/gemm_simple.json", manifest);
  load();
  const Result<Candidate> elsewhere = fallback_candidate(*entry, problem(1, 1, 1), h200());
  REQUIRE_FALSE(elsewhere.has_value());
  CHECK(elsewhere.error().text().find("sm_90a") != std::string::npos);
  fs::remove(folder.path() / "gemm/gemm_simple.json");
  load();
  CHECK(fallback_candidate(*entry, problem(1, 1, 1), h200()).error().code == Code::unsupported);
}

TEST_CASE_FIXTURE(Fixture, "five thousand variants are enumerated and ranked in a fraction of a second") {
  Json wide = gemm_mma();
  for (int raster = 0; raster < 36; ++raster) wide["params"]["raster"].push_back(raster);
  folder.write_json("gemm/gemm_mma.json", wide);
  load();
  const Problem wanted = problem(4096, 4096, 4096);
  const auto start = std::chrono::steady_clock::now();
  Result<std::vector<Candidate>> enumerated = enumerate_space(*entry, wanted, h200());
  REQUIRE(enumerated.has_value());
  std::vector<Candidate>& all = *enumerated;
  const Result<std::vector<std::size_t>> order = rank_space(all, *entry, wanted, h200());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  CHECK(all.size() > 5000);
  CHECK(must(order).size() > 2500);
  MESSAGE("seconds: ", took.count());
  CHECK(took.count() < 3.0);  // unoptimised, on a machine shared with other work; tens of milliseconds at -O2
}
