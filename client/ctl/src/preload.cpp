#include "ctl/preload.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "ctl/kernel_job.h"
#include "ctl/local.h"
#include "ctl/output.h"
#include "ctl/progress.h"
#include "ctl/shapes.h"

namespace tunerd::ctl {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string arch, from, cache, expect_hit, device_class;
  std::size_t jobs = 0;
};

Json to_json(const std::vector<Difference>& differences) {
  Json out = Json::array();
  for (const Difference& d : differences) out.push_back({{"field", d.field}, {"there", d.there}, {"here", d.here}});
  return out;
}

Status compile_plan(PreloadPlan& plan, const worker_host::CompilePoolOptions& pool, const std::string& nvrtc) {
  std::vector<Error> failures;
  Progress progress(plan.jobs.size());
  TRY(worker_host::compile_all(pool, plan.jobs, [&](std::size_t job, const wire::CompileResult& result) {
    if (const Status taken = take_kernel(plan, job, result, nvrtc); !taken) failures.push_back(taken.error());
    progress.step(plan.jobs[job].name + (result.ok ? "" : ": failed"));
  }));
  if (failures.empty()) return {};
  // All of them, one below the other: each is a variant to look at.
  Error error = failures.front();
  for (std::size_t i = 1; i < failures.size() && i < 20; ++i) error.message += "\n  " + failures[i].text();
  error.message += (failures.size() > 1 ? "\n" : " ") + std::to_string(failures.size()) + " of " +
                   std::to_string(plan.jobs.size()) + " kernels failed; nothing was written.";
  return Unexpected(std::move(error));
}

Result<cache::ImportReport> write_cache(const fs::path& folder, const cache::Bundle& bundle) {
  const bool made_here = !fs::exists(folder);
  cache::OpenOptions open;
  open.folder = folder;
  TRY_ASSIGN(cache::Store store, cache::Store::open(open));
  for (const std::string& warning : store.warnings()) std::cerr << "tunerctl: " << warning << '\n';
  TRY_ASSIGN(cache::ImportReport imported, cache::import_bundle(store, bundle));
  if (made_here) {
    // An image is built by root and served by somebody else.
    std::error_code error;
    fs::permissions(folder, fs::perms(0755), error);
    if (error) return fail(Code::io, "Cannot make " + folder.string() + " readable: " + error.message() + ".");
  }
  return imported;
}

Json audit_json(const Audit& audit) {
  Json contexts = Json::array();
  for (const cache::Context& context : audit.contexts) {
    contexts.push_back(
        {{"device_class", context.device_class.key()}, {"environment", tunerd::to_json(context.environment)}});
  }
  Json misses = Json::array();
  for (const Miss& miss : audit.misses) {
    misses.push_back({{"problem", miss.problem},
                      {"device_class", miss.device_class},
                      {"nearest_key", miss.nearest_key},
                      {"differences", to_json(miss.differences)}});
  }
  return {{"contexts", contexts}, {"problems", audit.problems}, {"hits", audit.hits}, {"misses", misses}};
}

void print_audit(const Audit& audit) {
  for (const Miss& miss : audit.misses) {
    std::cout << "MISS " << miss.problem << " on " << miss.device_class << '\n';
    if (miss.nearest_key.empty()) {
      std::cout << "  nothing of this op is stored\n";
    } else if (miss.nearest_key != miss.problem) {
      std::cout << "  nearest: " << miss.nearest_key << '\n';
    }
    for (const Difference& difference : miss.differences) std::cout << "  " << difference.text() << '\n';
  }
  std::cout << "audit: " << audit.hits << " of " << audit.problems << " hit";
  for (const cache::Context& context : audit.contexts) {
    std::cout << "\n  as " << context.device_class.key() << ", NVRTC " << context.environment.nvrtc << ", driver "
              << context.environment.driver;
  }
  std::cout << '\n';
}

Result<Audit> audit_written(const fs::path& folder, const Catalog& catalog, const std::vector<Problem>& problems,
                            std::vector<cache::Context> contexts) {
  // Opened as a daemon in a container would: read-only.
  cache::OpenOptions open;
  open.folder = folder;
  open.read_only = true;
  TRY_ASSIGN(cache::Store store, cache::Store::open(open));
  return audit(store, catalog, problems, std::move(contexts));
}

cache::Bundle of_device_class(cache::Bundle bundle, const std::string& key) {
  if (!key.empty()) {
    std::erase_if(bundle.winners, [&](const auto& entry) { return entry.context.device_class.key() != key; });
  }
  return bundle;
}

Result<int> run(const Globals& globals, const Options& options) {
  TRY(arch_cc(options.arch));
  const std::string arch = full_arch(options.arch);
  TRY_ASSIGN(const Catalog catalog, load_catalog(globals));
  TRY_ASSIGN(const std::vector<DeviceSpec> devices, load_device_specs(globals));
  std::vector<Problem> problems;
  if (!options.expect_hit.empty()) {
    TRY_ASSIGN(const std::vector<Json> shapes, read_shapes(options.expect_hit));
    TRY_ASSIGN(problems, check_shapes(shapes, catalog));
  }
  auto read = cache::read_bundle(options.from);
  if (!read) {
    report(read.error(), globals.json);
    return kUsage;
  }
  const cache::Bundle bundle = of_device_class(std::move(*read), options.device_class);
  const worker_host::CompilePoolOptions pool = compile_pool_options(options.jobs);
  TRY_ASSIGN(const std::string nvrtc, worker_host::nvrtc_version(pool));
  TRY_ASSIGN(PreloadPlan plan, plan_preload(bundle, catalog, devices, arch, nvrtc));
  for (const Stale& stale : plan.stale) {
    std::cerr << "tunerctl: not served here: " << stale.problem << " by " << stale.variant << '\n';
    for (const Difference& difference : stale.differences) std::cerr << "  " << difference.text() << '\n';
  }
  TRY(compile_plan(plan, pool, nvrtc));
  TRY_ASSIGN(const cache::ImportReport imported, write_cache(options.cache, plan.bundle));
  Json result{{"cache", options.cache},
              {"arch", arch},
              {"nvrtc", nvrtc},
              {"winners", plan.bundle.winners.size()},
              {"imported", imported.imported},
              {"kept", imported.kept},
              {"kernels", plan.jobs.size()},
              {"stale", Json::array()}};
  for (const Stale& stale : plan.stale) {
    result["stale"].push_back(
        {{"problem", stale.problem}, {"variant", stale.variant}, {"differences", to_json(stale.differences)}});
  }
  int code = kOk;
  if (!globals.json) {
    std::cout << plan.bundle.winners.size() << " winners of " << arch << ", " << plan.jobs.size()
              << " kernels compiled and checked, " << plan.stale.size() << " not served here; cache in "
              << options.cache << '\n';
  }
  if (!options.expect_hit.empty()) {
    TRY_ASSIGN(const Audit audited,
               audit_written(options.cache, catalog, problems, audit_contexts(plan.bundle, nvrtc)));
    if (!audited.misses.empty()) code = kMiss;
    if (globals.json) {
      result["audit"] = audit_json(audited);
    } else {
      print_audit(audited);
    }
  }
  if (globals.json) print_json(result);
  return code;
}

}  // namespace

void add_preload(CLI::App& app, const Globals& globals, Run& chosen) {
  auto* command = app.add_subcommand(
      "preload",
      "Build a cache from a bundle, in a container build: no daemon, no GPU. Compiles every winner of the "
      "architecture, checks it against the bundle, writes the cache, audits a shape file");
  auto options = std::make_shared<Options>();
  command->add_option("--arch", options->arch, "The architecture to preload, such as sm_90a")->required();
  command->add_option("--from", options->from, "The bundle, as `export` wrote it")->required();
  command
      ->add_option("--cache", options->cache,
                   "The cache folder to write; serve it with tunerd --read-only or as --base")
      ->required();
  command->add_option("--expect-hit", options->expect_hit,
                      "A shape file of which every problem must hit; any miss is printed with the field that differs, "
                      "and the exit code is 4");
  command->add_option("--device-class", options->device_class, "Only this device class of the bundle");
  command->add_option("--jobs", options->jobs, "Compile workers; default one a core");
  command->callback([&globals, &chosen, options] { chosen = [&globals, options] { return run(globals, *options); }; });
}

}  // namespace tunerd::ctl
