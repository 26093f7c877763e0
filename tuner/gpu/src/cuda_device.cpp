#include <chrono>

#include "gpu/cubin.h"
#include "gpu/device.h"
#include "gpu/nvml.h"
#include "gpu/timer.h"
#include "gpu/verify.h"

namespace tunerd::gpu {
namespace {

using Clock = std::chrono::steady_clock;

class CudaDevice final : public MeasureDevice {
 public:
  static Result<std::unique_ptr<MeasureDevice>> open(int ordinal, double launch_deadline_s) {
    TRY_ASSIGN(auto device, Device::open(ordinal, launch_deadline_s));
    TRY_ASSIGN(const auto compiler, Compiler::load());
    TRY_ASSIGN(auto helpers, Helpers::build(*device, compiler));
    return std::unique_ptr<MeasureDevice>(new CudaDevice(std::move(device), std::move(helpers)));
  }

  wire::WorkerHello hello() const override {
    wire::WorkerHello hello;
    hello.role = "measure";
    hello.device_kind = "cuda";
    hello.product_name = nvml_.product_name().empty() ? device_->name() : nvml_.product_name();
    hello.driver = nvml_.driver_version();
    hello.device_facts = device_->facts();
    hello.device_facts["nvml"] = nvml_.error().empty() ? "ok" : nvml_.error();
    hello.device_class.arch = device_->arch();
    hello.device_class.kind = "cuda";
    hello.device_class.sm_count = hello.device_facts["sm_count"].get<std::int64_t>();
    hello.device_class.memory_gb_per_s = (device_->memory_bytes_per_s() / 1'000'000'000 + 5) / 10 * 10;
    hello.device_class.mig = nvml_.mig_enabled() ? "enabled" : "none";
    hello.device_class.power_cap_w = nvml_.power_cap_w();
    return hello;
  }

  wire::MeasureResult run(const wire::MeasureJob& job) override {
    const auto started = Clock::now();
    wire::MeasureResult result;
    result.id = job.id;
    if (auto status = measure(job, result); !status) {
      const Error& error = status.error();
      result.error = error.text();
      result.status = device_->lost() || is_fatal(error) ? "fault"
                      : error.code == Code::busy         ? "out_of_memory"
                      : error.code == Code::device       ? "launch_failed"
                                                         : "unsupported";
      if (result.status == "out_of_memory") {
        verifier_.forget();
        timer_.forget();
      }
    }
    result.wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - started).count();
    return result;
  }

 private:
  CudaDevice(std::unique_ptr<Device> device, Helpers helpers)
      : device_(std::move(device)),
        helpers_(std::move(helpers)),
        nvml_(device_->pci_bus_id()),
        verifier_(*device_, helpers_),
        timer_(*device_, helpers_) {}

  Status measure(const wire::MeasureJob& job, wire::MeasureResult& result) {
    TRY_ASSIGN(OpSpec op, parse_op(job.op, "op"));
    TRY_ASSIGN(const Problem problem, problem_from_json(op, job.problem));
    TRY_ASSIGN(const auto kernel_info, find_kernel(job.cubin, job.recipe.entry));
    TRY(check_parameters(kernel_info, job.recipe));
    TRY_ASSIGN(const Module module, Module::load(*device_, job.cubin));
    TRY_ASSIGN(const CUfunction kernel, module.function(job.recipe.entry));
    if (last_problem_ != job.problem_key) timer_.forget();
    last_problem_ = job.problem_key;
    // Within what is really there, whatever the job allows.
    wire::MeasureJob bounded = job;
    TRY_ASSIGN(const auto free_bytes, device_->free_bytes());
    const std::int64_t room = free_bytes + verifier_.cached_bytes() + timer_.held_bytes();
    bounded.memory_limit_bytes = std::min(job.memory_limit_bytes, room / 10 * 9);
    if (job.verify) {
      TRY_ASSIGN(result.gates, verifier_.run(bounded, op, problem, kernel));
      if (!result.gates.back().passed) {
        result.status = "wrong";
        result.error = result.gates.back().gate + ": " + result.gates.back().detail;
        return {};
      }
    }
    if (job.time) {
      TRY_ASSIGN(result.launch_floor_us, timer_.launch_floor_us());
      result.device_before = nvml_.state();
      TRY_ASSIGN(auto timing, timer_.time(bounded, op, problem, kernel));
      result.device_after = nvml_.state();
      result.samples_us = std::move(timing.samples_us);
      result.median_us = timing.median_us;
      result.launches_per_replay = timing.launches_per_replay;
      result.copies = timing.copies;
      result.taint = taint_of(result.device_before, result.device_after);
      result.tainted = !result.taint.empty();
    }
    result.status = "ok";
    return {};
  }

  std::unique_ptr<Device> device_;
  Helpers helpers_;
  Nvml nvml_;
  Verifier verifier_;
  Timer timer_;
  std::string last_problem_;
};

}  // namespace

Result<std::unique_ptr<MeasureDevice>> open_cuda_device(int ordinal, double launch_deadline_s) {
  return CudaDevice::open(ordinal, launch_deadline_s);
}

}  // namespace tunerd::gpu
