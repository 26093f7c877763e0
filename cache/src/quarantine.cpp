#include <set>
#include <tuple>

#include "store_impl.h"

namespace tunerd::cache {

Status Store::quarantine(const QuarantineEntry& entry) {
  TRY(impl_->writable());
  if (entry.variant.empty()) return bad_input("variant", "", "a variant");
  const std::string at = entry.at.empty() ? utc_now() : entry.at;
  Database& database = *impl_->main;
  // The power may go with the machine that this variant hung.
  TRY(database.run("PRAGMA synchronous = FULL"));
  const auto write = [&]() -> Status {
    TRY_ASSIGN(Transaction transaction, Transaction::begin(database));
    TRY_ASSIGN(Statement insert,
               database.prepare("INSERT OR REPLACE INTO quarantine (variant, template_digest, "
                                "problem_key, device_class_key, reason, at) VALUES (?, ?, ?, ?, ?, ?)"));
    insert.text(entry.variant).text(entry.template_digest).text(entry.problem_key).text(entry.device_class_key);
    TRY(insert.text(entry.reason).text(at).run());
    return transaction.commit();
  };
  Status written = write();
  TRY(database.run("PRAGMA synchronous = NORMAL"));
  return written;
}

Result<std::vector<QuarantineEntry>> Store::quarantined(const std::string& device_class_key) {
  std::vector<QuarantineEntry> all;
  std::set<std::tuple<std::string, std::string, std::string, std::string>> seen;
  for (Database* layer : impl_->layers()) {
    TRY_ASSIGN(
        Statement select,
        layer->prepare("SELECT variant, template_digest, problem_key, device_class_key, reason, at FROM quarantine "
                       "WHERE device_class_key = ?1 OR ?1 = '' ORDER BY at, variant"));
    select.text(device_class_key);
    while (true) {
      TRY_ASSIGN(const bool there, select.row());
      if (!there) break;
      QuarantineEntry entry{select.text_at(0), select.text_at(1), select.text_at(2),
                            select.text_at(3), select.text_at(4), select.text_at(5)};
      if (seen.emplace(entry.variant, entry.template_digest, entry.problem_key, entry.device_class_key).second) {
        all.push_back(std::move(entry));
      }
    }
  }
  return all;
}

}  // namespace tunerd::cache
