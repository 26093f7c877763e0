// What every part of the daemon works on: catalog, device, store, workers, and the index of what is known. One thread,
// the loop's; `cpu` is the one other thread, for enumerating and ranking, which touches nothing but the immutable
// catalog.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <list>
#include <optional>
#include <unordered_map>

#include "answers.h"
#include "cache/store.h"
#include "compile_service.h"
#include "daemon/config.h"
#include "measure_service.h"
#include "memfd.h"
#include "model/catalog.h"
#include "search/space.h"
#include "wire/messages.h"

namespace tunerd::daemon {

struct Counters {
  std::int64_t connections = 0, refused_peers = 0, refused_full = 0, dropped_clients = 0, requests = 0,
               bad_requests = 0, denied = 0;
  std::map<std::string, std::int64_t> served;  // by quality
  std::int64_t misses = 0, tuned = 0, tune_failed = 0, store_errors = 0, writes_skipped = 0, pushes = 0;
};

// A variant made concrete for a family of problems, with its compiled bytes.
struct Kernel {
  std::string key;
  KernelSpec spec;
  const Template* source = nullptr;
  std::string digest;
  std::int64_t cubin_bytes = 0;
};

// The space of one problem, ranked: what serving needs of it.
struct Ranking {
  std::vector<Candidate> space;    // all of it
  std::vector<std::size_t> order;  // valid ones, best first
};

// A ranking under way, for all who ask for it meanwhile.
struct RankingFlight {
  explicit RankingFlight(const asio::any_io_executor& executor) : done(executor) {}
  Signal done;
  Result<std::shared_ptr<const Ranking>> result = fail(Code::internal, "not ranked");
};

class Core {
 public:
  Core(asio::io_context& loop, Config config);

  // Reads catalog and devices, starts the workers, opens the store, loads the index. Errors are start-up errors.
  Task<Status> start();
  void stop();

  asio::io_context& loop;
  const Config config;
  Catalog catalog;
  std::vector<DeviceSpec> devices;  // every table of config/devices
  DeviceSpec device;                // the one served
  cache::Context context;
  std::string product_name;
  std::optional<cache::Store> store;
  std::unique_ptr<CompileService> compile;
  std::unique_ptr<MeasureService> measure;  // null offline
  asio::thread_pool cpu{1};
  Counters counters;
  Answers answers;
  Clock::time_point started = Clock::now();
  std::string no_compiler;  // why nothing can be compiled; empty when it can
  std::vector<std::string> warnings;

  bool measuring() const { return measure != nullptr; }
  bool real_device() const { return context.device_class.kind == "cuda"; }

  Result<const OpEntry*> find_op(const std::string& name) const { return catalog.op(name); }
  Result<std::pair<const OpEntry*, Problem>> problem_of(const std::string& op, const Json& fields) const;
  // From {"op":…, fields…} as a `problem` field carries it.
  Result<std::pair<const OpEntry*, Problem>> problem_of(const Json& problem) const;

  // The winner of exactly this problem, if its template is unchanged and it is valid for it.
  const cache::Winner* winner(const std::string& key) const;
  bool is_current(const cache::Winner& winner) const;  // the template's digest is today's
  std::vector<const cache::Winner*> family(const std::string& family) const;
  Status put_winner(cache::Winner winner);  // store and index; a store that cannot write is counted, not fatal
  Status reload_winners();
  void quarantine(const std::string& variant, const std::string& template_digest, const std::string& reason);
  bool is_quarantined(const std::string& variant, const std::string& template_digest) const;
  const std::map<std::string, cache::QuarantineEntry>& quarantined() const { return quarantine_; }

  Task<Result<std::shared_ptr<const Ranking>>> ranking(const OpEntry& entry, const Problem& problem,
                                                       const std::string& key);

  // The same for any device, not kept.
  Task<Result<std::shared_ptr<const Ranking>>> rank(const OpEntry& entry, const Problem& problem, const DeviceSpec& on);

  // The kernel of a variant for a family. may_compile false: only what is stored. Error Code::not_found: not ready.
  Task<Result<Kernel>> kernel(const OpEntry& entry, const Template& source, const Variant& variant,
                              const Problem& problem, bool may_compile, Clock::time_point until, bool urgent);
  Task<Result<cache::Artifact>> reference(const OpEntry& entry, const KernelSpec& spec, Clock::time_point until);
  std::optional<cache::Artifact> artifact(const std::string& kernel_key);
  Result<std::shared_ptr<const SealedFile>> file_of(const Kernel& kernel);
  wire::CompileJob compile_job(const SourceClosure& closure, const std::string& entry,
                               const std::vector<std::string>& defines, const std::string& name) const;

 private:
  Task<Status> open_device();
  Status open_store();
  void keep(const std::string& key, const wire::CompileJob& job, const Compiled& compiled);

  std::unordered_map<std::string, cache::Winner> winners_;
  std::map<std::string, std::vector<std::string>> families_;  // family -> keys
  std::map<std::string, cache::QuarantineEntry> quarantine_;  // by variant + digest
  std::list<std::pair<std::string, std::shared_ptr<const Ranking>>> rankings_;
  std::map<std::string, std::shared_ptr<RankingFlight>> ranking_flights_;
  std::unordered_map<std::string, cache::Artifact> memory_;  // what could not be written
  std::list<std::string> memory_order_;
  std::list<std::pair<std::string, std::shared_ptr<const SealedFile>>> files_;
};

}  // namespace tunerd::daemon
