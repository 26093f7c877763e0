#include <unistd.h>

#include <memory>

#include "gpu/device.h"
#include "roles.h"
#include "wire/frame.h"

namespace tunerd::worker {
namespace {

constexpr int kLostContext = 3;

Result<std::unique_ptr<gpu::MeasureDevice>> open_device(const Options& options) {
  if (options.device_kind == "cuda") return gpu::open_cuda_device(options.device, options.launch_deadline_s);
  if (options.device_kind == "replay") return gpu::open_replay_device(options.recording);
  return unknown_name("device-kind", options.device_kind, {"cuda", "replay"});
}

}  // namespace

int run_measure(const Options& options) {
  auto device = open_device(options);
  wire::WorkerHello hello;
  if (device)
    hello = (*device)->hello();
  else
    hello.error = device.error().text();
  hello.role = "measure";
  hello.pid = ::getpid();
  if (!wire::send_frame(options.fd, to_json(hello)) || !device) return 1;
  for (;;) {
    auto body = wire::receive_frame(options.fd, wire::kMaxReplyBytes, nullptr);
    if (!body) return ended(body.error());
    auto job = wire::measure_job_from_json(*body);
    if (!job) return ended(job.error());
    const auto result = (*device)->run(*job);
    if (!wire::send_frame(options.fd, to_json(result))) return 1;
    // No destructors: with a kernel that never ends, releasing anything would wait for it.
    if (result.status == "fault") ::_exit(kLostContext);
  }
}

}  // namespace tunerd::worker
