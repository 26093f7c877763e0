// Messages between the daemon and its workers, over a socketpair in the worker's fd 3, framed as in frame.h.
// A worker answers each job once, in order. It sends a WorkerHello first. It exits when the socket closes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/device.h"
#include "model/environment.h"
#include "model/problem.h"
#include "model/recipe.h"

namespace tunerd::wire {

struct WorkerHello {
  std::string role;  // compile | measure
  std::int64_t pid = 0;
  std::string nvrtc;  // compile: version "13.0"; empty with `error` set when the library is missing
  // measure: the device it owns
  std::string device_kind;   // cuda | replay
  std::string product_name;  // as NVML gives it
  DeviceClass device_class;
  std::string driver;
  Json device_facts =
      Json::object();  // sm_count, l2_bytes, smem_per_block_bytes, smem_per_sm_bytes, clocks, memory: from the driver
  std::string error;   // why the role cannot work; empty when it can
};

struct CompileJob {
  std::uint64_t id = 0;
  std::string name;  // variant text, for messages
  std::string source_name, source;
  std::vector<std::pair<std::string, std::string>> headers;
  std::vector<std::string> options;  // fixed options and defines, without the architecture
  std::string arch;                  // sm_90a
  std::string entry;
};

struct CompileResult {
  std::uint64_t id = 0;
  bool ok = false;    // a cubin came out
  std::string cubin;  // ELF bytes
  std::string log;
  std::string error;     // first error line of the log when not ok
  std::string rejected;  // ok, yet not to be used: spills, or a C75xx line; names it. Empty otherwise
  std::int64_t registers = 0, spill_bytes = 0, stack_bytes = 0, static_smem_bytes = 0;
  double compile_ms = 0;
};

// Gates of design.md, in order: exact, gaussian, edges, guards (guards are checked on every run of the other three).
struct MeasureJob {
  std::uint64_t id = 0;
  std::string variant;  // text
  std::string problem_key;
  Json op;       // OpSpec::document
  Json problem;  // Problem::to_json
  Recipe recipe;
  std::string cubin;
  std::string reference_entry;
  std::string reference_cubin;
  std::vector<Json> edges;  // Problem::to_json of edge shapes to verify
  bool verify = true;
  bool time = true;
  std::int64_t repeats = 20;   // timed graph replays
  double min_replay_us = 400;  // launches a replay are chosen to last about this long
  std::uint64_t seed = 1;
  std::int64_t memory_limit_bytes = 32LL << 30;  // of device memory for all buffers
};

struct GateResult {
  std::string gate;  // exact | gaussian | edges | extremes | guards
  bool passed = false;
  std::string detail;  // what failed: index, got, expected, bound
};

struct MeasureResult {
  std::uint64_t id = 0;
  std::string status;  // ok | wrong | launch_failed | unsupported | out_of_memory | fault (the context is lost; the
                       // worker exits)
  std::string error;
  std::vector<GateResult> gates;
  std::vector<double> samples_us;  // per launch, one for each replay
  double median_us = 0;
  std::int64_t launches_per_replay = 0, copies = 0;
  double launch_floor_us = 0;  // an empty kernel in the same kind of graph
  bool tainted = false;
  std::string taint;  // why: clocks, throttle, foreign process
  Json device_before = Json::object(),
       device_after = Json::object();  // sm_clock_mhz, power_w, temperature_c, throttle, processes
  double wall_ms = 0;
};

Json to_json(const WorkerHello&);
Json to_json(const CompileJob&);
Json to_json(const CompileResult&);
Json to_json(const MeasureJob&);
Json to_json(const MeasureResult&);
Result<WorkerHello> worker_hello_from_json(const Json&);
Result<CompileJob> compile_job_from_json(const Json&);
Result<CompileResult> compile_result_from_json(const Json&);
Result<MeasureJob> measure_job_from_json(const Json&);
Result<MeasureResult> measure_result_from_json(const Json&);

}  // namespace tunerd::wire
