#include "schema.h"

#include <array>

namespace tunerd::cache {
namespace {

// `seal` is the digest of everything a winner says: a recipe with one flipped digit would launch a kernel wrongly.
constexpr const char* kVersion1 = R"sql(
CREATE TABLE device_classes (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, json TEXT NOT NULL) STRICT;
CREATE TABLE environments (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, json TEXT NOT NULL) STRICT;
CREATE TABLE problems (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, op TEXT NOT NULL, family TEXT NOT NULL, json TEXT NOT NULL) STRICT;
CREATE INDEX problems_by_op ON problems (op);
CREATE TABLE variants (
  id INTEGER PRIMARY KEY, text TEXT NOT NULL, template_digest TEXT NOT NULL, UNIQUE (text, template_digest)) STRICT;
CREATE TABLE samples (
  id INTEGER PRIMARY KEY,
  device_class INTEGER NOT NULL REFERENCES device_classes, environment INTEGER NOT NULL REFERENCES environments,
  problem INTEGER NOT NULL REFERENCES problems, variant INTEGER NOT NULL REFERENCES variants,
  median_us REAL NOT NULL, samples_us TEXT NOT NULL, tainted INTEGER NOT NULL, taint TEXT NOT NULL,
  status TEXT NOT NULL, error TEXT NOT NULL, gates TEXT NOT NULL, device_before TEXT NOT NULL, device_after TEXT NOT NULL,
  launches_per_replay INTEGER NOT NULL, copies INTEGER NOT NULL, launch_floor_us REAL NOT NULL, at TEXT NOT NULL) STRICT;
CREATE INDEX samples_by_problem ON samples (problem, device_class, environment);
CREATE TABLE winners (
  problem INTEGER NOT NULL REFERENCES problems, device_class INTEGER NOT NULL REFERENCES device_classes,
  environment INTEGER NOT NULL REFERENCES environments, variant INTEGER NOT NULL REFERENCES variants,
  kernel_key TEXT NOT NULL, kernel_digest TEXT NOT NULL, measured INTEGER NOT NULL, time_us REAL NOT NULL,
  t_sol_us REAL NOT NULL, sol_fraction REAL NOT NULL, generation INTEGER NOT NULL, recipe TEXT NOT NULL, at TEXT NOT NULL,
  seal TEXT NOT NULL, PRIMARY KEY (problem, device_class, environment)) STRICT, WITHOUT ROWID;
CREATE TABLE artifacts (
  kernel_key TEXT PRIMARY KEY, digest TEXT NOT NULL, cubin BLOB NOT NULL, entry TEXT NOT NULL, arch TEXT NOT NULL,
  nvrtc TEXT NOT NULL, variant TEXT NOT NULL, registers INTEGER NOT NULL, spill_bytes INTEGER NOT NULL,
  stack_bytes INTEGER NOT NULL, static_smem_bytes INTEGER NOT NULL, compile_ms REAL NOT NULL, log TEXT NOT NULL,
  at TEXT NOT NULL) STRICT;
CREATE TABLE artifacts_bad (
  id INTEGER PRIMARY KEY, kernel_key TEXT NOT NULL, digest TEXT NOT NULL, found_digest TEXT NOT NULL, cubin BLOB NOT NULL,
  at TEXT NOT NULL) STRICT;
CREATE TABLE quarantine (
  variant TEXT NOT NULL, template_digest TEXT NOT NULL, problem_key TEXT NOT NULL, device_class_key TEXT NOT NULL,
  reason TEXT NOT NULL, at TEXT NOT NULL,
  PRIMARY KEY (variant, template_digest, problem_key, device_class_key)) STRICT, WITHOUT ROWID;
)sql";

constexpr std::array<const char*, 1> kMigrations = {kVersion1};

Unexpected foreign_file(const Database& database) {
  return fail(Code::invalid_argument,
              "The file " + database.file().string() +
                  " is a database of another program, not a tuning cache; name another folder.");
}

Result<std::int64_t> version_of(Database& database) {
  TRY_ASSIGN(const std::int64_t application, database.integer("PRAGMA application_id"));
  TRY_ASSIGN(const std::int64_t version, database.integer("PRAGMA user_version"));
  TRY_ASSIGN(const std::int64_t tables, database.integer("SELECT count(*) FROM sqlite_schema"));
  if (application == kApplicationId) return version;
  if (application == 0 && version == 0 && tables == 0) return 0;
  return foreign_file(database);
}

Unexpected newer_schema(const Database& database, std::int64_t theirs, std::size_t ours) {
  return fail(Code::unsupported, "The cache database " + database.file().string() + " has schema version " +
                                     std::to_string(theirs) + ", and this program knows versions up to " +
                                     std::to_string(ours) + ": use the newer program, or another folder.");
}

}  // namespace

std::span<const char* const> migrations() { return kMigrations; }

Status migrate(Database& database, std::span<const char* const> steps) {
  TRY_ASSIGN(const std::int64_t version, version_of(database));
  if (version < 0 || std::size_t(version) > steps.size()) return newer_schema(database, version, steps.size());
  for (std::size_t step = std::size_t(version); step < steps.size(); ++step) {
    TRY_ASSIGN(Transaction transaction, Transaction::begin(database));
    TRY(database.run_script(steps[step]));
    // PRAGMA takes no parameters; both numbers are our own.
    const std::string stamp = "PRAGMA application_id = " + std::to_string(kApplicationId) +
                              "; PRAGMA user_version = " + std::to_string(step + 1);
    TRY(database.run_script(stamp.c_str()));
    TRY(transaction.commit());
  }
  return {};
}

Status require_schema(Database& database, std::span<const char* const> steps) {
  TRY_ASSIGN(const std::int64_t version, version_of(database));
  if (version == std::int64_t(steps.size())) return {};
  if (version > std::int64_t(steps.size())) return newer_schema(database, version, steps.size());
  return fail(Code::unsupported, "The cache database " + database.file().string() + " has schema version " +
                                     std::to_string(version) + ", older than this program's " +
                                     std::to_string(steps.size()) +
                                     ", and may not be written here: open it once writable to bring it up to date.");
}

}  // namespace tunerd::cache
