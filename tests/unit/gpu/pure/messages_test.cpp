// The worker messages, through the CBOR that they travel as.
#include <algorithm>
#include "fixture.h"

#include "wire/frame.h"

using namespace tunerd;
using namespace tunerd::test;

namespace {

Json travelled(const Json& message) {
  const std::string frame = wire::encode_frame(message);
  return must(wire::parse_body(std::string_view(frame).substr(wire::kHeaderBytes)));
}

std::string every_byte() {
  std::string bytes;
  for (int i = 0; i < 512; ++i) bytes += static_cast<char>(i);
  return bytes;
}

wire::CompileJob sample_compile_job() {
  auto job = compile_job(kScale, "scale", "sm_90a");
  job.id = ~std::uint64_t{0};
  job.headers = {{"device/mma.cuh", "// π, and a \"quote\"\n"}, {"b.cuh", ""}};
  return job;
}

wire::MeasureJob sample_measure_job() {
  wire::MeasureJob job;
  job.id = 1ull << 63;
  job.variant = "scale{threads=64}";
  job.problem_key = "scale{n=64,dtype=fp32}";
  job.op = {{"op", "scale"}};
  job.problem = {{"op", "scale"}, {"dims", {{"n", 64}}}};
  job.recipe.entry = "scale";
  job.recipe.tensors = {{"y", true, true, DType::fp32, {expr("n")}, "", 4}};
  job.recipe.arguments = {tensor_argument("y"), scalar_argument("n", "i32"), scalar_argument("factor", "f32")};
  job.recipe.launch.grid = {expr("ceildiv(n,64)"), expr("1"), expr("1")};
  job.recipe.launch.block = {64, 1, 1};
  job.cubin = every_byte();
  job.reference_entry = "scale_reference";
  job.reference_cubin = std::string("\0ELF\xff", 5);
  job.edges = {{{"op", "scale"}, {"dims", {{"n", 63}}}}};
  job.verify = false;
  job.repeats = 7;
  job.min_replay_us = 250.5;
  job.seed = 0xfedcba9876543210ull;
  job.memory_limit_bytes = 80ll << 30;
  return job;
}

// Every field taken away in turn, and an unknown one added, must be refused by name.
template <class Message>
void check_strict(const Json& message, Result<Message> (*read)(const Json&), const std::vector<std::string>& optional) {
  must(read(message));
  for (const auto& [key, value] : message.items()) {
    if (std::find(optional.begin(), optional.end(), key) != optional.end()) continue;
    Json without = message;
    without.erase(key);
    CAPTURE(key);
    CHECK(contains(must_fail(read(without)).text(), key));
    Json wrong = message;
    wrong[key] = Json::object({{"unexpected", Json::array({nullptr})}});
    if (!value.is_object()) CHECK(contains(must_fail(read(wrong)).text(), key));
  }
  Json more = message;
  more["surprise"] = 1;
  CHECK(contains(must_fail(read(more)).text(), "surprise"));
  CHECK_FALSE(read(Json::array()));
  CHECK_FALSE(read(Json()));
}

}  // namespace

TEST_CASE("a compile job comes back as it was sent, its id of 64 bits included") {
  const auto job = sample_compile_job();
  const auto back = must(wire::compile_job_from_json(travelled(to_json(job))));
  CHECK(back.id == job.id);
  CHECK(back.name == job.name);
  CHECK(back.source_name == job.source_name);
  CHECK(back.source == job.source);
  CHECK(back.headers == job.headers);
  CHECK(back.options == job.options);
  CHECK(back.arch == job.arch);
  CHECK(back.entry == job.entry);
}

TEST_CASE("a cubin travels as bytes, zeros and all") {
  wire::CompileResult result;
  result.id = 9;
  result.ok = true;
  result.cubin = every_byte();
  result.log = "log";
  result.rejected = "spills";
  result.registers = 255;
  result.spill_bytes = 1;
  result.stack_bytes = 2;
  result.static_smem_bytes = 3;
  result.compile_ms = 4.5;
  const auto back = must(wire::compile_result_from_json(travelled(to_json(result))));
  CHECK(back.id == 9);
  CHECK(back.ok);
  CHECK(back.cubin == result.cubin);
  CHECK(back.log == "log");
  CHECK(back.rejected == "spills");
  CHECK(back.registers == 255);
  CHECK(back.spill_bytes == 1);
  CHECK(back.stack_bytes == 2);
  CHECK(back.static_smem_bytes == 3);
  CHECK(back.compile_ms == 4.5);
}

TEST_CASE("a measure job comes back as it was sent, recipe, binaries and a seed above 2^63 included") {
  const auto job = sample_measure_job();
  const auto back = must(wire::measure_job_from_json(travelled(to_json(job))));
  CHECK(back.id == job.id);
  CHECK(back.variant == job.variant);
  CHECK(back.problem_key == job.problem_key);
  CHECK(back.op == job.op);
  CHECK(back.problem == job.problem);
  CHECK(back.recipe == job.recipe);
  CHECK(back.cubin == job.cubin);
  CHECK(back.reference_entry == job.reference_entry);
  CHECK(back.reference_cubin == job.reference_cubin);
  CHECK(back.edges == job.edges);
  CHECK(back.verify == job.verify);
  CHECK(back.time == job.time);
  CHECK(back.repeats == job.repeats);
  CHECK(back.min_replay_us == job.min_replay_us);
  CHECK(back.seed == job.seed);
  CHECK(back.memory_limit_bytes == job.memory_limit_bytes);
}

TEST_CASE("a measure result and a hello come back as they were sent") {
  wire::MeasureResult result;
  result.id = 3;
  result.status = "wrong";
  result.error = "exact: 1 element";
  result.gates = {{"edges", true, ""}, {"exact", false, "1 element"}};
  result.samples_us = {1.25, 2.5};
  result.median_us = 1.875;
  result.launches_per_replay = 100;
  result.copies = 4;
  result.launch_floor_us = 1.5;
  result.tainted = true;
  result.taint = "thermal";
  result.device_before = {{"sm_clock_mhz", 1980}};
  result.device_after = {{"sm_clock_mhz", 1755}};
  result.wall_ms = 12;
  const auto back = must(wire::measure_result_from_json(travelled(to_json(result))));
  CHECK(to_json(back) == to_json(result));
  REQUIRE(back.gates.size() == 2);
  CHECK(back.gates[1].gate == "exact");
  CHECK_FALSE(back.gates[1].passed);

  wire::WorkerHello hello;
  hello.role = "measure";
  hello.pid = 77;
  hello.device_kind = "cuda";
  hello.product_name = "NVIDIA H200";
  hello.device_class = {"sm_90a", "cuda", 132, 4810, "none", 700};
  hello.driver = "580.1";
  hello.device_facts = {{"sm_count", 132}};
  const auto hello_back = must(wire::worker_hello_from_json(travelled(to_json(hello))));
  CHECK(to_json(hello_back) == to_json(hello));
  CHECK(hello_back.device_class == hello.device_class);

  wire::WorkerHello broken;
  broken.role = "compile";
  broken.error = "NVRTC was not found";
  CHECK(must(wire::worker_hello_from_json(travelled(to_json(broken)))).error == "NVRTC was not found");
}

TEST_CASE("each message refuses a field that is missing, of another type, or unknown, by name") {
  check_strict<wire::CompileJob>(to_json(sample_compile_job()), wire::compile_job_from_json, {"options"});
  check_strict<wire::CompileResult>(to_json(wire::CompileResult{}), wire::compile_result_from_json, {"ok"});
  check_strict<wire::MeasureJob>(to_json(sample_measure_job()), wire::measure_job_from_json, {"verify", "time"});
  check_strict<wire::MeasureResult>(to_json(wire::MeasureResult{}), wire::measure_result_from_json,
                                    {"tainted", "device_before", "device_after"});
  check_strict<wire::WorkerHello>(to_json(wire::WorkerHello{}), wire::worker_hello_from_json, {"device_facts"});
}

TEST_CASE("a job for the other role is refused by its type") {
  Json job = to_json(sample_compile_job());
  job["type"] = "measure";
  const Error error = must_fail(wire::compile_job_from_json(job));
  CHECK(contains(error.text(), "type: measure"));
  CHECK(error.expected == "compile");
}

TEST_CASE("a measure job's bounds are checked: repeats, replay length, memory, seed") {
  const auto refused = [](const char* key, const Json& value) {
    Json job = to_json(sample_measure_job());
    job[key] = value;
    CAPTURE(key);
    CHECK(contains(must_fail(wire::measure_job_from_json(job)).text(), key));
  };
  refused("repeats", 0);
  refused("repeats", 10'001);
  refused("min_replay_us", 0);
  refused("min_replay_us", -1);
  refused("min_replay_us", 2e6);
  refused("memory_limit_bytes", 0);
  refused("memory_limit_bytes", -5);
  refused("seed", -1);
  refused("id", -1);
  refused("id", 1.5);
  refused("cubin", "text is no binary");
}
