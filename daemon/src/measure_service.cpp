#include "measure_service.h"

#include "log.h"

namespace tunerd::daemon {

MeasureService::MeasureService(asio::io_context& loop, std::filesystem::path program,
                               std::vector<std::string> arguments, Clock::duration deadline)
    : worker_(loop, std::move(program), std::move(arguments)), deadline_(deadline), turn_(loop.get_executor()) {}

Task<Result<wire::WorkerHello>> MeasureService::start() { co_return co_await worker_.ensure(); }

Task<Result<wire::MeasureResult>> MeasureService::run(const wire::MeasureJob& job) {
  // A fresh worker's hello is the health check: it made a context and ran its own kernels on the device.
  auto hello = co_await worker_.ensure();
  if (!hello) co_return Unexpected(hello.error());
  const auto started = Clock::now();
  auto body = co_await worker_.call(to_json(job), deadline_);
  counters_.seconds += std::chrono::duration<double>(Clock::now() - started).count();
  ++counters_.measurements;
  auto result = body ? wire::measure_result_from_json(*body) : Result<wire::MeasureResult>(Unexpected(body.error()));
  if (!result) {
    wire::MeasureResult fault;
    fault.id = job.id;
    fault.status = "fault";
    fault.error = job.variant + " " + result.error().message;
    result = std::move(fault);
  }
  if (result->status == "fault") {
    ++counters_.faults;
    worker_.stop();
    log_warn("measure worker replaced: " + result->error);
  }
  counters_.wrong += result->status == "wrong";
  counters_.tainted += result->tainted;
  co_return result;
}

void MeasureService::stop() { worker_.stop(); }

}  // namespace tunerd::daemon
