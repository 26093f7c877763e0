// From a variant to a compile job, for the commands that compile without a daemon.
#pragma once

#include <string>

#include "model/catalog.h"
#include "wire/worker.h"
#include "worker_host/compile_pool.h"

namespace tunerd::ctl {

struct KernelJob {
  KernelSpec spec;
  wire::CompileJob job;
};

// Errors as instantiate(): a parameter that is not the template's, a constraint that does not hold.
Result<KernelJob> make_kernel_job(const Template& source, const OpSpec& op, const Variant& variant,
                                  const Problem& problem, const DeviceSpec& device);
worker_host::CompilePoolOptions compile_pool_options(std::size_t workers = 0);

}  // namespace tunerd::ctl
