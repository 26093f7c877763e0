#include <unistd.h>

#include <cstdio>

#include "gpu/nvrtc.h"
#include "roles.h"
#include "wire/frame.h"

namespace tunerd::worker {
namespace {

// Resident memory of this process, from /proc/self/statm; 0 when it cannot be read.
std::int64_t resident_mib() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  long long total = 0, resident = 0;
  const bool read = std::fscanf(file, "%lld %lld", &total, &resident) == 2;
  std::fclose(file);
  return read ? resident * ::sysconf(_SC_PAGESIZE) / (1 << 20) : 0;
}

}  // namespace

int run_compile(const Options& options) {
  wire::WorkerHello hello;
  hello.role = "compile";
  hello.pid = ::getpid();
  auto compiler = gpu::Compiler::load();
  if (compiler)
    hello.nvrtc = compiler->version();
  else
    hello.error = compiler.error().text();
  if (!wire::send_frame(options.fd, to_json(hello)) || !compiler) return 1;
  for (;;) {
    auto body = wire::receive_frame(options.fd, wire::kMaxReplyBytes, nullptr);
    if (!body) return ended(body.error());
    auto job = wire::compile_job_from_json(*body);
    if (!job) return ended(job.error());
    if (!wire::send_frame(options.fd, to_json(compiler->compile(*job)))) return 1;
    if (options.max_rss_mib > 0 && resident_mib() > options.max_rss_mib) return 0;  // the parent starts a fresh one
  }
}

}  // namespace tunerd::worker
