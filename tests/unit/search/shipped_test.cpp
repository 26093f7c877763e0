// The templates that this project ships, without compiling them: what they promise holds.
#include <algorithm>
#include <map>
#include <set>

#include "../catalog/template_folder.h"
#include "search/model.h"
#include "search/space.h"

using namespace tunerd;
using namespace tunerd::testing;

namespace {

struct Shipped {
  Catalog catalog = must(Catalog::load({fs::path(TUNERD_SOURCE_DIR) / "templates"}));

  // One problem for each dtype and each value of each enumerated attribute, every dimension of `size`.
  static std::vector<Problem> problems(const OpSpec& op, std::int64_t size) {
    std::vector<Problem> all;
    for (DType dtype : op.dtypes) {
      Json fields{{"dtype", to_string(dtype)}};
      for (const DimSpec& dim : op.dims) fields[dim.name] = std::clamp(size, dim.min, dim.max);
      // A problem that cannot even be described (2^20 in each of three dimensions passes 2^62 bytes) is nobody's.
      if (!make_problem(op, fields)) continue;
      all.push_back(must(make_problem(op, fields)));
      if (op.dims.size() > 1) {  // one dimension on its own, and odd
        Json odd = fields;
        odd[op.dims[1].name] = std::clamp(size + 1, op.dims[1].min, op.dims[1].max);
        if (make_problem(op, odd)) all.push_back(must(make_problem(op, odd)));
      }
      for (const AttributeSpec& attribute : op.attributes) {
        for (const std::string& value : attribute.values) {
          Json other = fields;
          other[attribute.name] = value;
          all.push_back(must(make_problem(op, other)));
        }
      }
    }
    return all;
  }
};

}  // namespace

TEST_CASE_FIXTURE(Shipped, "every op that is promised is there") {
  for (const char* name : {"gemm", "rmsnorm", "add_rmsnorm", "layernorm", "softmax", "log_softmax", "cross_entropy",
                           "rope", "swiglu", "gelu"}) {
    CAPTURE(name);
    must(catalog.op(name));
  }
}

TEST_CASE_FIXTURE(Shipped, "every op has a fallback for every dtype, attribute and size") {
  const std::pair<const char*, int> devices[] = {{"sm_80", 80}, {"sm_89", 89}, {"sm_90a", 90}, {"sm_120a", 120}};
  for (const auto& [name, entry] : catalog.ops()) {
    for (const auto& [arch, cc] : devices) {
      for (const std::int64_t size : {1, 3, 127, 4096, 1 << 20}) {
        for (const Problem& problem : problems(entry.op, size)) {
          // Nor is one whose flops pass 64 bits.
          if (!speed_of_light(entry.op, problem, h200())) continue;
          CAPTURE(problem.key(entry.op));
          CAPTURE(arch);
          CHECK(must(fallback_candidate(entry, problem, h200(arch, cc))).valid);
        }
      }
    }
  }
}

TEST_CASE_FIXTURE(Shipped, "every template has valid variants on an H200 or an A100, at least 100 for a tuned gemm") {
  std::map<std::string, std::size_t> most;
  for (const auto& [name, entry] : catalog.ops()) {
    for (const Template& source : entry.templates) most[source.manifest.name] = 0;
    for (const auto& [arch, cc] : {std::pair{"sm_80", 80}, std::pair{"sm_90a", 90}}) {
      for (const std::int64_t size : {1, 16, 4096}) {
        for (const Problem& problem : problems(entry.op, size)) {
          std::map<std::string, std::size_t> valid;
          Result<std::vector<Candidate>> space = enumerate_space(entry, problem, h200(arch, cc));
          REQUIRE(space.has_value());
          for (const Candidate& candidate : *space) valid[candidate.variant.template_name] += candidate.valid ? 1 : 0;
          for (const auto& [source, count] : valid) most[source] = std::max(most[source], count);
        }
      }
    }
  }
  for (const auto& [source, count] : most) {
    CAPTURE(source);
    CHECK(count >= 1);
  }
  for (const Template& source : must(catalog.op("gemm"))->templates) {
    if (source.manifest.fallback) continue;
    CAPTURE(source.manifest.name);
    CHECK(most[source.manifest.name] >= 100);
  }
}

TEST_CASE_FIXTURE(Shipped, "every valid variant instantiates, ranks, launches and has edges to verify") {
  for (const auto& [name, entry] : catalog.ops()) {
    const std::vector<Problem> all = problems(entry.op, 4096);
    const Problem& first = all.front();
    for (const Problem& problem : all) {
      Result<std::vector<Candidate>> space = enumerate_space(entry, problem, h200());
      REQUIRE(space.has_value());
      const std::vector<std::size_t> order = must(rank_space(*space, entry, problem, h200()));
      const Symbols symbols = must(problem_symbols(entry.op, problem));
      std::set<std::string> seen;  // templates whose first variant gave its edges: they differ little within one
      std::size_t valid = 0;
      for (const Candidate& candidate : *space) {
        CAPTURE(candidate.variant.text());
        CAPTURE(candidate.reason);
        CHECK(candidate.reason.find(".cost.") == std::string::npos);
        if (!candidate.valid) continue;
        const Manifest& manifest = candidate.source->manifest;
        // Every one of the first problem, a sample of what differs in dtype or attribute only.
        constexpr std::size_t kSample = 17;
        if (problem != first && seen.count(manifest.name) != 0 && ++valid % kSample != 0) continue;
        const KernelSpec kernel = must(instantiate(manifest, entry.op, candidate.variant, problem, h200()));
        must(concrete_launch(kernel.recipe, symbols));
        if (!seen.insert(manifest.name).second) continue;
        CHECK(must(recipe_from_json(to_json(kernel.recipe))) == kernel.recipe);
        CHECK(must(edge_problems(manifest, entry.op, kernel, problem, h200())).size() >= 2);
      }
      CHECK_FALSE(order.empty());
    }
  }
}

TEST_CASE_FIXTURE(Shipped, "the guide's example and the templates that must never win load as a user's folders do") {
  const fs::path root(TUNERD_SOURCE_DIR);
  const Catalog more =
      must(Catalog::load({root / "templates", root / "docs" / "examples", root / "tests" / "gpu" / "faulty"}));
  must(more.op("relu"));
  CHECK(must(more.op("gelu"))->templates.size() > must(catalog.op("gelu"))->templates.size());
  CHECK(more.digest() != catalog.digest());
}
