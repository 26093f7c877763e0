#include <unordered_set>

#include "store_impl.h"

namespace tunerd::cache {
namespace {

// Counts the distinct identities that `sql` lists over all layers.
Result<std::int64_t> distinct(const std::vector<Database*>& layers, const char* sql) {
  std::unordered_set<std::string> seen;
  for (Database* layer : layers) {
    TRY_ASSIGN(Statement select, layer->prepare(sql));
    while (true) {
      TRY_ASSIGN(const bool there, select.row());
      if (!there) break;
      seen.insert(select.text_at(0));
    }
  }
  return std::int64_t(seen.size());
}

}  // namespace

Result<Counts> Store::counts() {
  const std::vector<Database*> layers = impl_->layers();
  Counts counts;
  TRY_ASSIGN(counts.problems, distinct(layers, "SELECT key FROM problems"));
  TRY_ASSIGN(counts.variants, distinct(layers, "SELECT text || ' ' || template_digest FROM variants"));
  TRY_ASSIGN(counts.winners,
             distinct(layers,
                      "SELECT p.key || ' ' || d.key || ' ' || e.key FROM winners w JOIN problems p ON p.id = "
                      "w.problem JOIN device_classes d ON d.id = w.device_class JOIN environments e ON e.id = "
                      "w.environment"));
  TRY_ASSIGN(counts.artifacts, distinct(layers, "SELECT kernel_key FROM artifacts"));
  TRY_ASSIGN(counts.quarantined, distinct(layers,
                                          "SELECT variant || ' ' || template_digest || ' ' || problem_key || ' ' "
                                          "|| device_class_key FROM quarantine"));
  for (Database* layer : layers) {
    TRY_ASSIGN(const std::int64_t samples, layer->integer("SELECT count(*) FROM samples"));
    TRY_ASSIGN(const std::int64_t pages, layer->integer("PRAGMA page_count"));
    TRY_ASSIGN(const std::int64_t page_bytes, layer->integer("PRAGMA page_size"));
    counts.samples += samples;  // appended, never shared between layers
    counts.bytes += pages * page_bytes;
  }
  return counts;
}

}  // namespace tunerd::cache
