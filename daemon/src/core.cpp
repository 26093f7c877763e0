#include "core.h"

#include <algorithm>
#include <thread>

#include "log.h"

namespace tunerd::daemon {
namespace {

Clock::duration seconds(double value) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(value));
}

}  // namespace

Core::Core(asio::io_context& io, Config settings) : loop(io), config(std::move(settings)) {}

Task<Status> Core::start() {
  auto loaded = Catalog::load(config.templates);
  if (!loaded) co_return Unexpected(loaded.error());
  catalog = std::move(*loaded);
  auto tables = load_devices(config.devices);
  if (!tables) co_return Unexpected(tables.error());
  devices = std::move(*tables);
  const auto program = worker_host::worker_path();
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  compile = std::make_unique<CompileService>(loop, program,
                                             config.workers > 0 ? static_cast<std::size_t>(config.workers) : cores,
                                             seconds(config.compile_deadline_s));
  compile->stored = [this](const std::string& key, const wire::CompileJob& job, const Compiled& compiled) {
    keep(key, job, compiled);
  };
  auto nvrtc = co_await compile->start();
  if (nvrtc) {
    context.environment.nvrtc = *nvrtc;
  } else {
    // What is cached can still be served: its NVRTC version is taken from the cache once it is open.
    no_compiler = nvrtc.error().text();
    context.environment.nvrtc = "none";
    warnings.push_back("nothing can be compiled: " + no_compiler);
    log_warn(warnings.back());
  }
  std::string flags;
  for (const auto& option : fixed_nvrtc_options()) flags += (flags.empty() ? "" : " ") + option;
  context.environment.flags = flags;
  if (auto opened = co_await open_device(); !opened) co_return opened;
  co_return open_store();
}

Task<Status> Core::open_device() {
  context.environment.driver = "none";
  if (!config.offline.empty()) {
    auto found = config.offline.rfind("sm_", 0) == 0 ? representative_device(devices, config.offline)
                                                     : find_device(devices, config.offline);
    if (!found) co_return Unexpected(found.error());
    device = std::move(*found);
    product_name = device.name;
    context.device_class = {device.arch,     "offline",
                            device.sm_count, static_cast<std::int64_t>(device.memory_bytes_per_s / 1e9 + 5) / 10 * 10,
                            "none",          0};
    co_return Status{};
  }
  std::vector<std::string> arguments{"--role",
                                     "measure",
                                     "--device",
                                     std::to_string(config.device),
                                     "--launch-deadline-s",
                                     std::to_string(config.launch_deadline_s)};
  if (!config.replay.empty())
    arguments.insert(arguments.end(), {"--device-kind", "replay", "--recording", config.replay});
  measure =
      std::make_unique<MeasureService>(loop, worker_host::worker_path(), arguments, seconds(config.measure_deadline_s));
  auto hello = co_await measure->start();
  if (!hello) {
    Error error = hello.error();
    if (config.replay.empty())
      error.message += ". Without a GPU, serve with --offline sm_90a (or another architecture)";
    co_return Unexpected(std::move(error));
  }
  product_name = hello->product_name;
  context.device_class = hello->device_class;
  context.environment.driver = hello->driver;
  const auto named = std::find_if(devices.begin(), devices.end(), [&](const DeviceSpec& spec) {
    return std::find(spec.product_names.begin(), spec.product_names.end(), hello->product_name) !=
           spec.product_names.end();
  });
  if (named != devices.end()) {
    device = *named;
  } else {
    auto stand_in = representative_device(devices, hello->device_class.arch);
    if (!stand_in) co_return Unexpected(stand_in.error());
    device = std::move(*stand_in);
    warnings.push_back("no peaks are known for " + hello->product_name + ": SOL bounds use those of " + device.name);
    log_warn(warnings.back());
  }
  // Sizes come from the driver, peaks from the table.
  const auto fact = [&](const char* name, std::int64_t& value) {
    if (const auto found = hello->device_facts.find(name);
        found != hello->device_facts.end() && found->is_number_integer() && found->get<std::int64_t>() > 0)
      value = found->get<std::int64_t>();
  };
  fact("sm_count", device.sm_count);
  fact("l2_bytes", device.l2_bytes);
  fact("smem_per_block_bytes", device.smem_per_block_bytes);
  fact("smem_per_sm_bytes", device.smem_per_sm_bytes);
  fact("registers_per_sm", device.registers_per_sm);
  fact("threads_per_sm", device.threads_per_sm);
  co_return Status{};
}

Status Core::open_store() {
  cache::OpenOptions options;
  options.folder = config.cache;
  if (!config.base.empty()) options.base = config.base;
  options.read_only = config.read_only;
  TRY_ASSIGN(auto opened, cache::Store::open(options));
  store.emplace(std::move(opened));
  for (const auto& warning : store->warnings()) {
    warnings.push_back(warning);
    log_warn(warning);
  }
  TRY_ASSIGN(const auto entries, store->quarantined(context.device_class.key()));
  for (const auto& entry : entries) quarantine_[entry.variant + "/" + entry.template_digest] = entry;
  return reload_winners();
}

Status Core::reload_winners() {
  TRY_ASSIGN(auto all, store->all_winners());
  if (context.environment.nvrtc == "none")
    for (const auto& winner : all) {
      // Served without a compiler: the kernels are there, and no other version can disagree with them.
      const auto at = winner.environment_key.find("nvrtc=");
      if (at != std::string::npos)
        context.environment.nvrtc =
            winner.environment_key.substr(at + 6, winner.environment_key.find(';', at) - at - 6);
      break;
    }
  winners_.clear();
  families_.clear();
  answers.clear();
  const std::string device_class = context.device_class.key(), environment = context.environment.key();
  for (auto& winner : all) {
    if (winner.device_class_key != device_class || winner.environment_key != environment) continue;
    families_[winner.problem.family()].push_back(winner.problem_key);
    winners_.emplace(winner.problem_key, std::move(winner));
  }
  return {};
}

void Core::stop() {
  if (compile) compile->stop();
  if (measure) measure->stop();
  cpu.stop();
  cpu.join();
}

Result<std::pair<const OpEntry*, Problem>> Core::problem_of(const std::string& op, const Json& fields) const {
  TRY_ASSIGN(const OpEntry* entry, catalog.op(op));
  TRY_ASSIGN(auto problem, make_problem(entry->op, fields));
  return std::pair{entry, std::move(problem)};
}

Result<std::pair<const OpEntry*, Problem>> Core::problem_of(const Json& problem) const {
  if (!problem.is_object())
    return bad_input("problem", problem.dump().substr(0, 80), "an object with op and its fields");
  const auto op = problem.find("op");
  if (op == problem.end() || !op->is_string())
    return bad_input("problem.op", op == problem.end() ? "" : op->dump().substr(0, 80), "the name of an op");
  return problem_of(op->get<std::string>(), problem);
}

bool Core::is_current(const cache::Winner& winner) const {
  const auto variant = Variant::parse(winner.variant);
  if (!variant) return false;
  const auto source = catalog.find_template(variant->template_name);
  return source && (*source)->closure.digest == winner.template_digest;
}

const cache::Winner* Core::winner(const std::string& key) const {
  const auto found = winners_.find(key);
  return found == winners_.end() || !is_current(found->second) ? nullptr : &found->second;
}

std::vector<const cache::Winner*> Core::family(const std::string& name) const {
  std::vector<const cache::Winner*> out;
  if (const auto found = families_.find(name); found != families_.end())
    for (const auto& key : found->second)
      if (const auto* known = winner(key)) out.push_back(known);
  return out;
}

Status Core::put_winner(cache::Winner winner) {
  Status written;
  if (config.read_only) {
    ++counters.writes_skipped;
  } else {
    written = store->put_winner(context, winner);
    if (!written) {
      ++counters.store_errors;
      log_error("a winner was not stored: " + written.error().text());
    }
  }
  winner.device_class_key = context.device_class.key();
  winner.environment_key = context.environment.key();
  const std::string key = winner.problem_key, family_name = winner.problem.family();
  if (!winners_.contains(key)) families_[family_name].push_back(key);
  winners_[key] = std::move(winner);
  answers.forget(key);
  return written;
}

void Core::quarantine(const std::string& variant, const std::string& template_digest, const std::string& reason) {
  cache::QuarantineEntry entry{variant, template_digest, "", context.device_class.key(), reason, ""};
  log_warn("quarantined " + variant + ": " + reason);
  if (!config.read_only)
    if (auto written = store->quarantine(entry); !written) {
      ++counters.store_errors;
      log_error("the quarantine was not stored: " + written.error().text());
    }
  quarantine_[variant + "/" + template_digest] = std::move(entry);
  answers.clear();
}

bool Core::is_quarantined(const std::string& variant, const std::string& template_digest) const {
  return quarantine_.contains(variant + "/" + template_digest);
}

}  // namespace tunerd::daemon
