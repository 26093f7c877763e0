// The tuning cache: one SQLite database, one owner (a lock file), one connection. Samples are appended, winners
// derived, kernels content-addressed. A read-only base may lie under the writable store; reads fall through to it,
// writes never touch it.
//
// Files in DIR: tunerd.lock, tuning.sqlite3. Not thread-safe: the daemon's loop, or a tool that holds the lock, is the
// one caller.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/device.h"
#include "model/environment.h"
#include "model/problem.h"

namespace tunerd::cache {

// Where a result holds: both are in every key.
struct Context {
  DeviceClass device_class;
  Environment environment;
};

struct Artifact {
  std::string kernel_key;  // model/source.h kernel_key
  std::string digest;      // sha256 of cubin
  std::string cubin;
  std::string entry, arch, nvrtc, variant;
  std::int64_t registers = 0, spill_bytes = 0, stack_bytes = 0, static_smem_bytes = 0;
  double compile_ms = 0;
  std::string log;
};

struct Sample {
  std::string variant, template_digest;
  double median_us = 0;
  std::vector<double> samples_us;
  bool tainted = false;
  std::string taint, status, error;  // MeasureResult::status
  Json gates = Json::array(), device_before = Json::object(), device_after = Json::object();
  std::int64_t launches_per_replay = 0, copies = 0;
  double launch_floor_us = 0;
  std::string at;  // UTC, RFC 3339; filled on insert when empty
};

struct Winner {
  Problem problem;
  std::string problem_key;
  std::string variant;
  std::string template_digest;  // of the closure it was made from: a changed template is a miss
  std::string kernel_key, kernel_digest;
  bool measured = false;
  double time_us = 0;  // 0 when predicted
  double t_sol_us = 0, sol_fraction = 0;
  std::uint64_t generation = 1;
  Json recipe;  // to_json(Recipe)
  std::string at;
  std::string device_class_key, environment_key;  // filled on read
  bool from_base = false;                         // filled on read
};

struct QuarantineEntry {
  std::string variant, template_digest, problem_key, device_class_key, reason, at;
};

struct Counts {
  std::int64_t problems = 0, variants = 0, samples = 0, winners = 0, artifacts = 0, quarantined = 0, bytes = 0;
};

// Why a key missed: the closest stored row and every field in which it differs.
struct Explanation {
  bool hit = false;
  std::string nearest_key;  // empty when nothing of the op is stored
  struct Difference {
    std::string field, there, here;
  };
  std::vector<Difference> differences;
};

struct OpenOptions {
  std::filesystem::path folder;               // created 0700 when absent (writable)
  std::optional<std::filesystem::path> base;  // a folder that another Store wrote; opened immutable
  bool read_only = false;                     // serve `folder` itself, no writes: writes are errors of Code::denied
  // The database's size limit; 0: none. A write past it is an error of Code::io, and works again once there is room.
  std::int64_t max_bytes = 0;
  // statfs f_type of a folder; empty: ask the system. Tests put a folder on NFS with it.
  std::function<Result<std::int64_t>(const std::filesystem::path&)> filesystem_type;
};

class Store {
 public:
  // Errors: another owner holds the lock (names its pid), a folder of another user or group/world writable, NFS, a
  // newer schema (names both versions). A malformed database is set aside as tuning.sqlite3.corrupt-<UTC> and a fresh
  // one started; warnings() says so.
  static Result<Store> open(const OpenOptions& options);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  const std::vector<std::string>& warnings() const;

  // Artifacts. get verifies the digest: a mismatch is a miss (and the row is set aside).
  Status put_artifact(const Artifact& artifact);
  Result<std::optional<Artifact>> get_artifact(const std::string& kernel_key);
  Result<bool> has_artifact(const std::string& kernel_key);

  // Samples, winners: in one transaction a call.
  Status add_sample(const Context& context, const Problem& problem, const std::string& problem_key,
                    const Sample& sample);
  Result<std::vector<Sample>> samples(const Context& context, const std::string& problem_key);
  Status put_winner(const Context& context, const Winner& winner);  // replaces; keeps generation monotonic
  Result<std::optional<Winner>> winner(const Context& context, const std::string& problem_key);
  Result<std::vector<Winner>> winners(const Context& context, const std::string& op = {});  // empty: all ops
  Result<std::vector<Winner>> all_winners();                                                // every context

  Status quarantine(const QuarantineEntry& entry);  // problem_key empty: for every problem
  Result<std::vector<QuarantineEntry>> quarantined(const std::string& device_class_key);
  // Compares with the stored winner that differs in the fewest fields: device class fields, environment fields, dtype,
  // attributes, dimensions, strides, and template digest (current_template_digest(variant's template) given by
  // `template_digest_of`).
  Result<Explanation> explain(const Context& context, const Problem& problem, const std::string& problem_key,
                              const std::function<std::string(const std::string& template_name)>& template_digest_of);
  Result<Counts> counts();  // the base included; what both hold counts once

  struct Impl;  // only the cache's own sources see into it

 private:
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
  friend class BundleAccess;
};

}  // namespace tunerd::cache
