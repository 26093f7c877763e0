#include "ctl/preload.h"

namespace tunerd::ctl {
namespace {

Result<bool> hits(cache::Store& store, const Catalog& catalog, const cache::Context& context, const std::string& key,
                  Miss& miss) {
  TRY_ASSIGN(const std::optional<cache::Winner> winner, store.winner(context, key));
  if (!winner) return false;
  const auto source = catalog.find_template(winner->variant.substr(0, winner->variant.find('{')));
  if (!source || (*source)->closure.digest != winner->template_digest) return false;
  TRY_ASSIGN(const std::optional<cache::Artifact> artifact, store.get_artifact(winner->kernel_key));
  if (artifact && artifact->digest == winner->kernel_digest) return true;
  miss.nearest_key = key;
  miss.differences.push_back({"kernel", "not in the cache", winner->kernel_digest});
  return false;
}

}  // namespace

Result<std::vector<Problem>> check_shapes(const std::vector<Json>& shapes, const Catalog& catalog) {
  std::vector<Problem> problems;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const auto in_file = [&](Error error) {
      error.field = "problems[" + std::to_string(i) + "]" + (error.field.empty() ? "" : "." + error.field);
      return Unexpected(std::move(error));
    };
    const auto entry = catalog.op(shapes[i].value("op", ""));
    if (!entry) return in_file(entry.error());
    auto problem = make_problem((*entry)->op, shapes[i]);
    if (!problem) return in_file(problem.error());
    problems.push_back(std::move(*problem));
  }
  return problems;
}

Result<Audit> audit(cache::Store& store, const Catalog& catalog, const std::vector<Problem>& problems,
                    std::vector<cache::Context> contexts) {
  const auto digest_of = [&](const std::string& name) {
    const auto source = catalog.find_template(name);
    return source ? (*source)->closure.digest : std::string();
  };
  Audit result;
  result.contexts = std::move(contexts);
  for (const Problem& problem : problems) {
    TRY_ASSIGN(const OpEntry* entry, catalog.op(problem.op));
    const std::string key = problem.key(entry->op);
    for (const cache::Context& context : result.contexts) {
      ++result.problems;
      Miss miss{key, context.device_class.key(), {}, {}};
      TRY_ASSIGN(const bool hit, hits(store, catalog, context, key, miss));
      if (hit) {
        ++result.hits;
        continue;
      }
      if (miss.differences.empty()) {
        TRY_ASSIGN(const cache::Explanation why, store.explain(context, problem, key, digest_of));
        miss.nearest_key = why.nearest_key;
        for (const auto& difference : why.differences) {
          miss.differences.push_back({difference.field, difference.there, difference.here});
        }
      }
      result.misses.push_back(std::move(miss));
    }
  }
  return result;
}

}  // namespace tunerd::ctl
