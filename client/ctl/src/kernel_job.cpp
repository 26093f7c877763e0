#include "ctl/kernel_job.h"

#include "worker_host/process.h"

namespace tunerd::ctl {

Result<KernelJob> make_kernel_job(const Template& source, const OpSpec& op, const Variant& variant,
                                  const Problem& problem, const DeviceSpec& device) {
  KernelJob made;
  TRY_ASSIGN(made.spec, instantiate(source.manifest, op, variant, problem, device));
  made.job.name = variant.text();
  made.job.source_name = source.closure.name;
  made.job.source = source.closure.text;
  made.job.headers = source.closure.headers;
  made.job.options = fixed_nvrtc_options();
  made.job.options.insert(made.job.options.end(), made.spec.defines.begin(), made.spec.defines.end());
  made.job.arch = device.arch;
  made.job.entry = source.manifest.entry;
  return made;
}

worker_host::CompilePoolOptions compile_pool_options(std::size_t workers) {
  worker_host::CompilePoolOptions options;
  options.worker = worker_host::worker_path();
  options.workers = workers;
  return options;
}

}  // namespace tunerd::ctl
