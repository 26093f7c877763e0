#include <set>
#include <tuple>

#include "cache/bundle.h"
#include "store_impl.h"

namespace tunerd::cache {
namespace {

// Whether the bundle's winner should replace ours. Times compare only between measurements of the same template.
bool is_better(const Winner& theirs, const Winner& ours) {
  if (theirs.template_digest != ours.template_digest) return theirs.at > ours.at;
  if (theirs.measured != ours.measured) return theirs.measured;
  return theirs.measured && theirs.time_us < ours.time_us;
}

Status insert_missing_samples(Store& store, const BundleWinner& entry) {
  const std::string& key = entry.winner.problem_key;
  TRY_ASSIGN(const std::vector<Sample> ours, store.samples(entry.context, key));
  std::set<std::tuple<std::string, std::string, double>> seen;
  for (const Sample& sample : ours) seen.emplace(sample.variant, sample.at, sample.median_us);
  Database& database = *BundleAccess::parts(store).main;
  for (const Sample& sample : entry.samples) {
    if (seen.count({sample.variant, sample.at, sample.median_us}) != 0) continue;
    TRY(insert_sample(database, entry.context, entry.winner.problem, key, sample));
  }
  return {};
}

std::string classes_of(const Bundle& bundle) {
  std::set<std::string> keys;
  for (const BundleWinner& entry : bundle.winners) keys.insert(entry.context.device_class.key());
  std::string text;
  for (const std::string& key : keys) text += (text.empty() ? "" : ", ") + key;
  return text.empty() ? "no winners" : text;
}

}  // namespace

Result<ImportReport> import_bundle(Store& store, const Bundle& bundle, const std::string& only_device_class_key) {
  Store::Impl& parts = BundleAccess::parts(store);
  TRY(parts.writable());
  ImportReport report;
  TRY_ASSIGN(Transaction transaction, Transaction::begin(*parts.main));
  std::size_t of_class = 0;
  for (const BundleWinner& entry : bundle.winners) {
    const std::string device_class = entry.context.device_class.key();
    if (!only_device_class_key.empty() && device_class != only_device_class_key) {
      report.skipped.push_back(entry.winner.problem_key + ": of device class " + device_class);
      continue;
    }
    ++of_class;
    TRY(insert_missing_samples(store, entry));
    TRY_ASSIGN(const std::optional<Winner> ours, store.winner(entry.context, entry.winner.problem_key));
    if (ours && !is_better(entry.winner, *ours)) {
      ++report.kept;
      continue;
    }
    if (!entry.artifact.cubin.empty()) TRY(insert_artifact(*parts.main, entry.artifact));
    TRY(insert_winner(parts, entry.context, entry.winner));
    ++report.imported;
  }
  if (!only_device_class_key.empty() && of_class == 0) {
    Error error{Code::unsupported,     "The bundle holds nothing for this device class; nothing was imported.",
                "device_class",        classes_of(bundle),
                only_device_class_key, {}};
    return Unexpected(std::move(error));
  }
  TRY(transaction.commit());
  return report;
}

}  // namespace tunerd::cache
