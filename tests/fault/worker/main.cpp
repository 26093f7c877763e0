// A tuner-worker for tests. Role compile: the real one. Role measure: a device of no substance that acts on a plan,
// $FAULTY_WORKER_PLAN, a file read before every job: {"<part of a variant's text>": {"do": action, "us": time}}.
//   ok      that time           wrong   a gate fails         tainted  a time that must not be used
//   fault   status fault, exits die     killed by a signal   hang     never answers
//   fault_on_retime             ok while verified, a fault when only timed
// A variant that no part matches takes 100 us. Each job is appended to $FAULTY_WORKER_PLAN.log: verify or time, and the
// variant.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "model/json_reader.h"
#include "wire/frame.h"
#include "wire/worker.h"

namespace {

using tunerd::Json;

constexpr int kFd = 3;
constexpr int kLostContext = 3;

tunerd::wire::WorkerHello hello() {
  tunerd::wire::WorkerHello out;
  out.role = "measure";
  out.pid = ::getpid();
  out.device_kind = "cuda";
  out.product_name = "NVIDIA H200";
  out.device_class = {"sm_90a", "cuda", 132, 4800, "none", 700};
  out.driver = "0.0.test";
  out.device_facts = {{"sm_count", 132}};
  return out;
}

Json step_for(const std::string& plan_file, const std::string& variant) {
  std::ifstream in(plan_file);
  const Json plan = Json::parse(in, nullptr, false);
  if (plan.is_object())
    for (const auto& [part, step] : plan.items())
      if (variant.find(part) != std::string::npos) return step;
  return {{"do", "ok"}, {"us", 100.0}};
}

tunerd::wire::MeasureResult act(const tunerd::wire::MeasureJob& job, const Json& step) {
  tunerd::wire::MeasureResult result;
  result.id = job.id;
  const std::string action = step.value("do", "ok");
  if (action == "hang")
    while (true) ::pause();
  if (action == "die") ::raise(SIGKILL);
  if (const int slow_ms = step.value("slow_ms", 0)) ::usleep(static_cast<useconds_t>(slow_ms) * 1000);
  const bool fault = action == "fault" || (action == "fault_on_retime" && !job.verify);
  result.status = fault ? "fault" : action == "wrong" ? "wrong" : "ok";
  if (fault) result.error = "an illegal memory access was planned";
  if (action == "wrong") result.error = "gate exact failed";
  result.tainted = action == "tainted";
  if (result.tainted) result.taint = "foreign process";
  for (const char* gate : {"exact", "gaussian", "edges", "guards"})
    if (job.verify) result.gates.push_back({gate, result.status == "ok", ""});
  if (result.status == "ok") {
    result.median_us = step.value("us", 100.0);
    result.samples_us.assign(static_cast<std::size_t>(job.repeats), result.median_us);
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  std::string role;
  for (int i = 1; i + 1 < argc; ++i)
    if (std::string(argv[i]) == "--role") role = argv[i + 1];
  if (role != "measure") {
    ::execv(TUNERD_BINARY_DIR "/bin/tuner-worker", argv);
    return 127;
  }
  const char* plan = std::getenv("FAULTY_WORKER_PLAN");
  if (plan == nullptr || !tunerd::wire::send_frame(kFd, to_json(hello()))) return 1;
  while (true) {
    const auto body = tunerd::wire::receive_frame(kFd, tunerd::wire::kMaxReplyBytes, nullptr);
    if (!body) return 0;
    const auto job = tunerd::wire::measure_job_from_json(*body);
    if (!job) {
      std::fprintf(stderr, "faulty worker: %s\n", job.error().text().c_str());
      return 1;
    }
    std::ofstream(std::string(plan) + ".log", std::ios::app)
        << (job->verify ? "verify " : "time ") << job->variant << '\n';
    const auto result = act(*job, step_for(plan, job->variant));
    if (!tunerd::wire::send_frame(kFd, to_json(result))) return 1;
    if (result.status == "fault") ::_exit(kLostContext);
  }
}
