// Preload: from a bundle to a cache that serves hits, compiled here, without a daemon and without a GPU.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cache/bundle.h"
#include "model/catalog.h"
#include "model/device.h"
#include "wire/worker.h"

namespace tunerd::ctl {

struct Difference {
  std::string field, there, here;  // there: in the bundle or cache; here: what this build asks for
  std::string text() const;        // "environment.nvrtc: 12.9 there, 13.0 here"
};

// A winner that this build would not serve. Its row is still written, so that explain can name the difference.
struct Stale {
  std::string problem, variant;
  std::vector<Difference> differences;
};

struct PreloadPlan {
  cache::Bundle bundle;                           // the winners of the architecture, without kernels
  std::vector<wire::CompileJob> jobs;             // one a kernel
  std::vector<std::vector<std::size_t>> winners;  // of bundle.winners, for each job
  std::vector<Stale> stale;
};

// Errors: no winner of that architecture (names those there are); not one that this build would serve (names why); a
// winner whose problem is none of its op.
Result<PreloadPlan> plan_preload(const cache::Bundle& bundle, const Catalog& catalog,
                                 const std::vector<DeviceSpec>& devices, const std::string& arch,
                                 const std::string& nvrtc);

// Puts a compiled kernel into the plan's bundle. The error names both digests and both NVRTC versions when the bytes
// are not those the winner was measured with.
Status take_kernel(PreloadPlan& plan, std::size_t job, const wire::CompileResult& result, const std::string& nvrtc);

struct Miss {
  std::string problem, device_class, nearest_key;
  std::vector<Difference> differences;
};
struct Audit {
  std::vector<cache::Context> contexts;
  std::int64_t problems = 0, hits = 0;
  std::vector<Miss> misses;
};

// Problems of a shape file, checked against the catalog, before anything is compiled.
Result<std::vector<Problem>> check_shapes(const std::vector<Json>& shapes, const Catalog& catalog);
// One context for each device class of the bundle: this build's NVRTC, flags and protocol, and the driver of the newest
// winner.
std::vector<cache::Context> audit_contexts(const cache::Bundle& bundle, const std::string& nvrtc);
// Every problem must hit in every context: a winner from the catalog's template, with a kernel that passes its digest.
Result<Audit> audit(cache::Store& store, const Catalog& catalog, const std::vector<Problem>& problems,
                    std::vector<cache::Context> contexts);

}  // namespace tunerd::ctl
