// Getting kernels: rankings, artifacts, compiles, sealed files.
#include <algorithm>
#include <cctype>

#include "core.h"
#include "log.h"
#include "model/digest.h"

namespace tunerd::daemon {
namespace {

constexpr std::size_t kRankings = 64, kMemoryArtifacts = 256, kFiles = 1024;

}  // namespace

Task<Result<std::shared_ptr<const Ranking>>> Core::ranking(const OpEntry& entry, const Problem& problem,
                                                           const std::string& key) {
  for (auto it = rankings_.begin(); it != rankings_.end(); ++it)
    if (it->first == key) {
      rankings_.splice(rankings_.begin(), rankings_, it);
      co_return it->second;
    }
  if (const auto found = ranking_flights_.find(key); found != ranking_flights_.end()) {
    const auto flight = found->second;
    co_await flight->done.wait_until(Clock::time_point::max());
    co_return flight->result;
  }
  const auto flight = std::make_shared<RankingFlight>(loop.get_executor());
  ranking_flights_[key] = flight;
  try {
    flight->result = co_await rank(entry, problem, device);
  } catch (const std::exception& error) {
    flight->result = fail(Code::internal, "Ranking " + key + " failed: " + error.what());
  }
  ranking_flights_.erase(key);
  flight->done.notify();
  if (!flight->result) co_return flight->result;
  rankings_.emplace_front(key, *flight->result);
  if (rankings_.size() > kRankings) rankings_.pop_back();
  co_return flight->result;
}

Task<Result<std::shared_ptr<const Ranking>>> Core::rank(const OpEntry& entry, const Problem& problem,
                                                        const DeviceSpec& on) {
  // Thousands of variants take tens of milliseconds: on the other thread, so that nobody else waits.
  auto work = [&entry, &problem, &on]() -> Task<Result<std::shared_ptr<const Ranking>>> {
    auto made = std::make_shared<Ranking>();
    auto space = enumerate_space(entry, problem, on);
    if (!space) co_return Unexpected(space.error());
    made->space = std::move(*space);
    auto order = rank_space(made->space, entry, problem, on);
    if (!order) co_return Unexpected(order.error());
    made->order = std::move(*order);
    co_return std::shared_ptr<const Ranking>(std::move(made));
  };
  co_return co_await asio::co_spawn(cpu.get_executor(), work, asio::use_awaitable);
}

wire::CompileJob Core::compile_job(const SourceClosure& closure, const std::string& entry,
                                   const std::vector<std::string>& defines, const std::string& name) const {
  wire::CompileJob job;
  job.name = name;
  job.source_name = closure.name;
  job.source = closure.text;
  job.headers = closure.headers;
  job.options = fixed_nvrtc_options();
  job.options.insert(job.options.end(), defines.begin(), defines.end());
  job.arch = device.arch;
  job.entry = entry;
  return job;
}

std::optional<cache::Artifact> Core::artifact(const std::string& kernel_key) {
  if (const auto found = memory_.find(kernel_key); found != memory_.end()) return found->second;
  auto stored = store->get_artifact(kernel_key);
  if (stored) return std::move(*stored);
  ++counters.store_errors;
  log_error("a kernel was not read: " + stored.error().text());
  return std::nullopt;
}

void Core::keep(const std::string& key, const wire::CompileJob& job, const Compiled& compiled) {
  const auto& result = compiled.result;
  if (!result.ok || !result.rejected.empty()) return;
  cache::Artifact made;
  made.kernel_key = key;
  made.digest = sha256_hex(result.cubin);
  made.cubin = result.cubin;
  made.entry = job.entry;
  made.arch = job.arch;
  made.nvrtc = context.environment.nvrtc;
  made.variant = job.name;
  made.registers = result.registers;
  made.spill_bytes = result.spill_bytes;
  made.stack_bytes = result.stack_bytes;
  made.static_smem_bytes = result.static_smem_bytes;
  made.compile_ms = result.compile_ms;
  made.log = result.log;
  if (!config.read_only) {
    const auto written = store->put_artifact(made);
    if (written) return;
    ++counters.store_errors;
    log_error("a kernel was not stored, it is served from memory: " + written.error().text());
  } else {
    ++counters.writes_skipped;
  }
  memory_order_.push_back(key);
  memory_[key] = std::move(made);
  if (memory_order_.size() > kMemoryArtifacts) {
    memory_.erase(memory_order_.front());
    memory_order_.pop_front();
  }
}

Task<Result<Kernel>> Core::kernel(const OpEntry& entry, const Template& source, const Variant& variant,
                                  const Problem& problem, bool may_compile, Clock::time_point until, bool urgent) {
  Kernel made;
  made.source = &source;
  auto spec = instantiate(source.manifest, entry.op, variant, problem, device);
  if (!spec) co_return Unexpected(spec.error());
  made.spec = std::move(*spec);
  made.key =
      kernel_key(source.closure, made.spec.recipe.entry, made.spec.defines, device.arch, context.environment.nvrtc);
  const std::string name = variant.text();
  if (is_quarantined(name, source.closure.digest)) co_return fail(Code::denied, name + " is quarantined");
  auto have = artifact(made.key);
  if (!have) {
    if (!may_compile) co_return fail(Code::not_found, name + " is not compiled");
    auto compiled = co_await compile->compile(
        made.key, compile_job(source.closure, made.spec.recipe.entry, made.spec.defines, name), until, urgent);
    if (!compiled) co_return Unexpected(compiled.error());
    if (compiled->fatal && !is_quarantined(name, source.closure.digest))
      quarantine(name, source.closure.digest, compiled->result.error);
    const auto& result = compiled->result;
    if (!result.ok) co_return fail(Code::compile_failed, name + ": " + result.error);
    if (!result.rejected.empty()) co_return fail(Code::unsupported, name + " was rejected: " + result.rejected);
    have = artifact(made.key);
    if (!have) {
      have.emplace();  // written, then found damaged: serve what the compiler gave
      have->cubin = result.cubin;
      have->digest = sha256_hex(result.cubin);
    }
  }
  made.digest = have->digest;
  made.cubin_bytes = static_cast<std::int64_t>(have->cubin.size());
  co_return made;
}

Task<Result<cache::Artifact>> Core::reference(const OpEntry& entry, const KernelSpec& spec, Clock::time_point until) {
  const std::string& name = entry.op.reference.entry;
  // The same defines as the templates, but only those that do not come from parameters change what it computes: the key
  // holds them all.
  std::vector<std::string> defines;
  for (const auto& define : spec.defines)
    if (define.rfind("-DDTYPE_", 0) == 0 || define.rfind("-DHAS_", 0) == 0) defines.push_back(define);
  for (const auto& attribute : entry.op.attributes) {
    std::string prefix = "-D" + attribute.name + "_";
    std::transform(prefix.begin(), prefix.end(), prefix.begin(), [](unsigned char c) { return std::toupper(c); });
    for (const auto& define : spec.defines)
      if (define.rfind(prefix, 0) == 0) defines.push_back(define);
  }
  std::sort(defines.begin(), defines.end());
  const std::string key = kernel_key(entry.reference, name, defines, device.arch, context.environment.nvrtc);
  if (auto have = artifact(key)) co_return std::move(*have);
  auto compiled = co_await compile->compile(
      key, compile_job(entry.reference, name, defines, "reference of " + entry.op.name), until, true);
  if (!compiled) co_return Unexpected(compiled.error());
  if (!compiled->result.ok)
    co_return fail(Code::compile_failed,
                   "The reference of " + entry.op.name + " does not compile: " + compiled->result.error);
  cache::Artifact made;
  made.cubin = compiled->result.cubin;
  made.entry = name;
  co_return made;
}

Result<std::shared_ptr<const SealedFile>> Core::file_of(const Kernel& kernel) {
  for (auto it = files_.begin(); it != files_.end(); ++it)
    if (it->first == kernel.digest) {
      files_.splice(files_.begin(), files_, it);
      return it->second;
    }
  const auto have = artifact(kernel.key);
  if (!have) return fail(Code::not_found, kernel.spec.variant.text() + " is no longer stored");
  TRY_ASSIGN(auto file, SealedFile::make(have->cubin));
  files_.emplace_front(kernel.digest, file);
  if (files_.size() > kFiles) files_.pop_back();
  return file;
}

}  // namespace tunerd::daemon
