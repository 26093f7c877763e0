#include <algorithm>
#include <map>
#include <set>

#include "ctl/kernel_job.h"
#include "ctl/preload.h"
#include "model/digest.h"

namespace tunerd::ctl {
namespace {

std::string flags_here() {
  std::string text;
  for (const std::string& option : fixed_nvrtc_options()) text += (text.empty() ? "" : " ") + option;
  return text;
}

void compare(std::vector<Difference>& out, const char* field, const std::string& there, const std::string& here) {
  if (there != here) out.push_back({field, there, here});
}

// Whatever of the key this build fixes. The driver is the running machine's.
std::vector<Difference> environment_differences(const Environment& there, const std::string& nvrtc) {
  std::vector<Difference> out;
  compare(out, "environment.nvrtc", there.nvrtc, nvrtc);
  compare(out, "environment.flags", there.flags, flags_here());
  compare(out, "environment.measurement_protocol", std::to_string(there.measurement_protocol),
          std::to_string(kMeasurementProtocol));
  return out;
}

// The spec that constraints of this class's variants were judged by.
Result<DeviceSpec> device_for(const std::vector<DeviceSpec>& devices, const DeviceClass& device_class) {
  for (const DeviceSpec& device : devices) {
    if (device.arch == device_class.arch && device.sm_count == device_class.sm_count) return device;
  }
  TRY_ASSIGN(DeviceSpec device, representative_device(devices, device_class.arch));
  if (device_class.sm_count > 0) device.sm_count = device_class.sm_count;
  return device;
}

std::string archs_of(const cache::Bundle& bundle) {
  std::set<std::string> archs;
  for (const auto& entry : bundle.winners) archs.insert(entry.context.device_class.arch);
  std::string text;
  for (const std::string& arch : archs) text += (text.empty() ? "" : ", ") + arch;
  return text.empty() ? "no winners at all" : text;
}

class Planner {
 public:
  Planner(PreloadPlan& plan, const Catalog& catalog, const std::vector<DeviceSpec>& devices, const std::string& nvrtc)
      : plan_(plan), catalog_(catalog), devices_(devices), nvrtc_(nvrtc) {}

  Status add(cache::BundleWinner entry) {
    entry.artifact.cubin.clear();  // what is served is compiled here
    const std::size_t index = plan_.bundle.winners.size();
    plan_.bundle.winners.push_back(std::move(entry));
    const cache::BundleWinner& added = plan_.bundle.winners[index];
    std::vector<Difference> differences = environment_differences(added.context.environment, nvrtc_);
    const auto source = template_of(added, differences);
    if (differences.empty()) TRY(add_job(index, *source, differences));
    if (!differences.empty()) {
      plan_.stale.push_back({added.winner.problem_key, added.winner.variant, std::move(differences)});
    }
    return {};
  }

 private:
  // Null, with a difference, when the catalog's template is gone or another.
  const Template* template_of(const cache::BundleWinner& entry, std::vector<Difference>& differences) const {
    const std::string name = entry.winner.variant.substr(0, entry.winner.variant.find('{'));
    const auto found = catalog_.find_template(name);
    if (!found) {
      differences.push_back({"template_digest", entry.winner.template_digest, "(no template " + name + ")"});
      return nullptr;
    }
    compare(differences, "template_digest", entry.winner.template_digest, (*found)->closure.digest);
    return *found;
  }

  Status add_job(std::size_t index, const Template& source, std::vector<Difference>& differences) {
    const cache::BundleWinner& entry = plan_.bundle.winners[index];
    TRY_ASSIGN(const OpEntry* op, catalog_.op(entry.winner.problem.op));
    TRY_ASSIGN(const Problem problem, problem_from_json(op->op, entry.winner.problem.to_json()));
    if (const std::string key = problem.key(op->op); key != entry.winner.problem_key) {
      return bad_input("bundle problem_key", entry.winner.problem_key, key);
    }
    TRY_ASSIGN(const Variant variant, Variant::parse(entry.winner.variant));
    TRY_ASSIGN(const DeviceSpec device, device_for(devices_, entry.context.device_class));
    auto made = make_kernel_job(source, op->op, variant, problem, device);
    if (!made) {
      // The same source under a changed manifest: the parameters or constraints are others now.
      differences.push_back({"manifest", entry.winner.variant, made.error().text()});
      return {};
    }
    const std::string key = kernel_key(source.closure, source.manifest.entry, made->spec.defines, device.arch, nvrtc_);
    compare(differences, "kernel_key", entry.winner.kernel_key, key);
    if (!differences.empty()) return {};
    const auto [found, is_new] = job_of_.try_emplace(key, plan_.jobs.size());
    if (is_new) {
      made->job.id = plan_.jobs.size() + 1;
      plan_.jobs.push_back(std::move(made->job));
      plan_.winners.emplace_back();
    }
    plan_.winners[found->second].push_back(index);
    return {};
  }

  PreloadPlan& plan_;
  const Catalog& catalog_;
  const std::vector<DeviceSpec>& devices_;
  const std::string& nvrtc_;
  std::map<std::string, std::size_t> job_of_;
};

}  // namespace

std::string Difference::text() const { return field + ": " + there + " there, " + here + " here"; }

Result<PreloadPlan> plan_preload(const cache::Bundle& bundle, const Catalog& catalog,
                                 const std::vector<DeviceSpec>& devices, const std::string& arch,
                                 const std::string& nvrtc) {
  PreloadPlan plan;
  plan.bundle.created_at = bundle.created_at;
  plan.bundle.created_by = bundle.created_by;
  Planner planner(plan, catalog, devices, nvrtc);
  for (const cache::BundleWinner& entry : bundle.winners) {
    if (entry.context.device_class.arch == arch) TRY(planner.add(entry));
  }
  if (plan.bundle.winners.empty()) {
    return bad_input("--arch", arch, "an architecture of the bundle, which holds " + archs_of(bundle));
  }
  if (plan.jobs.empty()) {
    const Difference& first = plan.stale.front().differences.front();
    Error error{Code::unsupported,
                "None of the bundle's " + std::to_string(plan.stale.size()) + " winners of " + arch +
                    " would be served here; nothing was written.",
                first.field,
                first.there + " in the bundle",
                first.here + " here",
                {}};
    return Unexpected(std::move(error));
  }
  return plan;
}

Status take_kernel(PreloadPlan& plan, std::size_t job, const wire::CompileResult& result, const std::string& nvrtc) {
  const std::string& name = plan.jobs.at(job).name;
  if (!result.ok) {
    return Unexpected(
        Error{Code::compile_failed, "A winner's kernel does not compile: " + result.error, "variant", name, {}, {}});
  }
  const std::string digest = sha256_hex(result.cubin);
  for (const std::size_t index : plan.winners.at(job)) {
    cache::BundleWinner& entry = plan.bundle.winners.at(index);
    if (entry.winner.kernel_digest != digest) {
      return Unexpected(Error{Code::corrupt,
                              "The kernel of " + name + " compiled here is not the one that was measured.",
                              "kernel_digest",
                              digest + " by NVRTC " + nvrtc,
                              entry.winner.kernel_digest + " by NVRTC " + entry.context.environment.nvrtc,
                              {}});
    }
    cache::Artifact& artifact = entry.artifact;
    artifact.cubin = result.cubin;
    artifact.digest = digest;
    artifact.entry = plan.jobs[job].entry;
    artifact.arch = plan.jobs[job].arch;
    artifact.nvrtc = nvrtc;
    artifact.registers = result.registers;
    artifact.spill_bytes = result.spill_bytes;
    artifact.stack_bytes = result.stack_bytes;
    artifact.static_smem_bytes = result.static_smem_bytes;
    artifact.compile_ms = result.compile_ms;
    artifact.log = result.log;
  }
  return {};
}

std::vector<cache::Context> audit_contexts(const cache::Bundle& bundle, const std::string& nvrtc) {
  std::map<std::string, std::pair<std::string, cache::Context>> newest;  // by device class: at, context
  for (const cache::BundleWinner& entry : bundle.winners) {
    auto& [at, context] = newest[entry.context.device_class.key()];
    if (!at.empty() && entry.winner.at <= at) continue;
    at = entry.winner.at;
    context.device_class = entry.context.device_class;
    context.environment = {nvrtc, entry.context.environment.driver, flags_here(), kMeasurementProtocol};
  }
  std::vector<cache::Context> contexts;
  for (auto& [key, value] : newest) contexts.push_back(std::move(value.second));
  return contexts;
}

}  // namespace tunerd::ctl
