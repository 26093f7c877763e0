// What the sources of the store share: its parts, and the row functions each topic offers the others. Row functions run
// inside the caller's transaction; the Store's own methods open one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cache/store.h"
#include "database.h"
#include "folder.h"

namespace tunerd::cache {

struct WinnerRow {
  Context context;
  Winner winner;
};

struct Store::Impl {
  OpenOptions options;
  FolderLock lock, base_lock;
  std::unique_ptr<Database> main;  // immutable when options.read_only
  std::unique_ptr<Database> base;  // null without one
  std::vector<std::string> warnings;

  void warn(std::string text);  // the last kMaxWarnings are kept
  Status writable() const;
  // The overlay first, then the base.
  std::vector<Database*> layers() const;
  Result<std::vector<WinnerRow>> winner_rows(const std::string& op);  // every context; the overlay's row wins
};

inline constexpr std::size_t kMaxWarnings = 100;

// intern.cpp: row ids, made when absent.
Result<std::int64_t> intern_device_class(Database& database, const DeviceClass& device_class);
Result<std::int64_t> intern_environment(Database& database, const Environment& environment);
Result<std::int64_t> intern_problem(Database& database, const Problem& problem, const std::string& key);
Result<std::int64_t> intern_variant(Database& database, const std::string& text, const std::string& template_digest);

// problem_json.cpp: Problem::to_json read back without its op, which the cache does not know.
Result<Problem> problem_from_row(const std::string& text);

// artifacts.cpp, samples.cpp, winners.cpp
Status insert_artifact(Database& database, const Artifact& artifact);
Status insert_sample(Database& database, const Context& context, const Problem& problem, const std::string& problem_key,
                     const Sample& sample);
Status insert_winner(Store::Impl& store, const Context& context, const Winner& winner);

// Lets the bundle functions see the parts: an import is one transaction over several topics.
class BundleAccess {
 public:
  static Store::Impl& parts(Store& store) { return *store.impl_; }
};

std::string utc_now();                    // RFC 3339 with milliseconds
std::string dump_text(const Json& json);  // never throws: bytes that are no UTF-8 are replaced
Result<Json> parse_text(std::string_view text, const std::string& what);  // Code::corrupt

}  // namespace tunerd::cache
