// What costs a context is tried in a worker of its own.
#include <unistd.h>

#include <chrono>

#include "copy_op.h"
#include "wire/frame.h"
#include "worker_host/process.h"

using namespace tunerd;
using namespace tunerd::test;

namespace {

constexpr int kPatienceMs = 60'000;

std::filesystem::path worker_program() {
  const auto beside = worker_host::worker_path();
  return std::filesystem::exists(beside) ? beside : beside.parent_path().parent_path() / "bin/tuner-worker";
}

struct Worker {
  worker_host::Process process;
  wire::WorkerHello hello;
  Worker()
      : process(must(worker_host::Process::spawn(worker_program(),
                                                 {"--role", "measure", "--launch-deadline-s", "2", "--device", "0"}))),
        hello(must(wire::worker_hello_from_json(must(receive())))) {
    REQUIRE(hello.error.empty());
  }
  Result<Json> receive() { return wire::receive_frame(process.socket(), wire::kMaxReplyBytes, nullptr, kPatienceMs); }
  wire::MeasureResult run(const std::string& body) {
    const auto compiler = must(gpu::Compiler::load());
    CopyJob what;
    what.body = body;
    const auto job = measure_job(compiler, hello.device_class.arch, what);
    must(wire::send_frame(process.socket(), to_json(job), -1, kPatienceMs));
    return must(wire::measure_result_from_json(must(receive())));
  }
  // Killed only if it does not end by itself, which then shows.
  std::string end() {
    CHECK_FALSE(receive());
    for (int i = 0; i < 2000; ++i) {
      if (const std::string ended = process.try_wait(); !ended.empty()) return ended;
      ::usleep(10'000);
    }
    return process.kill() + " by its parent";
  }
};

void healthy() {
  Worker fresh;
  const auto result = fresh.run(kCopyBody);
  CAPTURE(result.error);
  CHECK(result.status == "ok");
}

}  // namespace

TEST_CASE("an illegal access is a fault, its worker ends, and a fresh one measures right") {
  Worker worker;
  CHECK(worker.run(kCopyBody).status == "ok");
  const auto result = worker.run("out[(1ll << 44) + threadIdx.x] = in[0];");
  CHECK(result.status == "fault");
  CHECK(contains(result.error, "CUDA_ERROR_ILLEGAL_ADDRESS"));
  CHECK(worker.end() == "exit 3");
  healthy();
}

TEST_CASE(
    "a kernel that never ends is a fault at the launch deadline, its worker ends, and a fresh one measures right") {
  Worker worker;
  const auto started = std::chrono::steady_clock::now();
  const auto result = worker.run("while (((volatile float*)in)[0] != 12345.0f) {} out[0] = 0.0f;");
  CHECK(std::chrono::steady_clock::now() - started < std::chrono::seconds(15));
  CHECK(result.status == "fault");
  CHECK(contains(result.error, "did not end within 2 s"));
  CHECK(worker.end() == "exit 3");
  healthy();
}

TEST_CASE("a worker killed in the middle of an endless kernel frees the device for the next") {
  {
    Worker worker;
    const auto compiler = must(gpu::Compiler::load());
    CopyJob what;
    what.body = "while (((volatile float*)in)[0] != 12345.0f) {} out[0] = 0.0f;";
    must(wire::send_frame(worker.process.socket(), to_json(measure_job(compiler, worker.hello.device_class.arch, what)),
                          -1, kPatienceMs));
    ::usleep(1'000'000);
    CHECK(worker.process.kill() == "signal 9");
  }
  healthy();
}
