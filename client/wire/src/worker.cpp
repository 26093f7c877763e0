#include "wire/worker.h"

namespace tunerd::wire {
namespace {

constexpr auto kReplace = Json::error_handler_t::replace;

Json binary(const std::string& bytes) { return Json::binary(std::vector<std::uint8_t>(bytes.begin(), bytes.end())); }

Result<std::string> binary_of(JsonReader& reader, const std::string& key) {
  const Json* value = reader.any(key);
  if (value == nullptr || !value->is_binary())
    return bad_input(reader.path() + "." + key, value == nullptr ? "absent" : value->type_name(), "binary data");
  const auto& bytes = value->get_binary();
  return std::string(bytes.begin(), bytes.end());
}

Result<Json> object_or_empty(JsonReader& reader, const std::string& key) {
  if (!reader.has(key)) return Json::object();
  TRY_ASSIGN(const Json* value, reader.object(key));
  return *value;
}

Result<std::vector<double>> numbers(JsonReader& reader, const std::string& key) {
  TRY_ASSIGN(const Json* list, reader.array(key));
  std::vector<double> out;
  for (const auto& value : *list) {
    if (!value.is_number()) return bad_input(reader.path() + "." + key, value.dump(-1, ' ', true, kReplace), "numbers");
    out.push_back(value.get<double>());
  }
  return out;
}

// Ids and seeds use all 64 bits.
Result<std::uint64_t> unsigned_of(JsonReader& reader, const std::string& key) {
  const Json* value = reader.any(key);
  if (value != nullptr && value->is_number_unsigned()) return value->get<std::uint64_t>();
  return bad_input(reader.path() + "." + key, value == nullptr ? "absent" : value->dump(-1, ' ', true, kReplace),
                   "an unsigned integer");
}

Status check_type(JsonReader& reader, const std::string& expected) {
  TRY_ASSIGN(const auto type, reader.string("type"));
  if (type == expected) return {};
  return bad_input(reader.path() + ".type", type, expected);
}

}  // namespace

Json to_json(const WorkerHello& hello) {
  return {{"type", "hello"},
          {"role", hello.role},
          {"pid", hello.pid},
          {"nvrtc", hello.nvrtc},
          {"device_kind", hello.device_kind},
          {"product_name", hello.product_name},
          {"device_class", to_json(hello.device_class)},
          {"driver", hello.driver},
          {"device_facts", hello.device_facts},
          {"error", hello.error}};
}

Result<WorkerHello> worker_hello_from_json(const Json& json) {
  JsonReader reader(json, "worker_hello");
  WorkerHello hello;
  TRY(check_type(reader, "hello"));
  TRY_ASSIGN(hello.role, reader.string("role"));
  TRY_ASSIGN(hello.pid, reader.integer("pid"));
  TRY_ASSIGN(hello.nvrtc, reader.string("nvrtc"));
  TRY_ASSIGN(hello.device_kind, reader.string("device_kind"));
  TRY_ASSIGN(hello.product_name, reader.string("product_name"));
  TRY_ASSIGN(const Json* device_class, reader.object("device_class"));
  // A compile worker, and a measure worker that found none, own no device: their class is empty.
  if (const auto kind = device_class->find("kind"); kind == device_class->end() || *kind != "") {
    TRY_ASSIGN(hello.device_class, device_class_from_json(*device_class));
  }
  TRY_ASSIGN(hello.driver, reader.string("driver"));
  TRY_ASSIGN(hello.device_facts, object_or_empty(reader, "device_facts"));
  TRY_ASSIGN(hello.error, reader.string("error"));
  TRY(reader.finish());
  return hello;
}

Json to_json(const CompileJob& job) {
  Json headers = Json::array();
  for (const auto& [name, text] : job.headers) headers.push_back({{"name", name}, {"text", text}});
  return {{"type", "compile"},    {"id", job.id},       {"name", job.name},       {"source_name", job.source_name},
          {"source", job.source}, {"headers", headers}, {"options", job.options}, {"arch", job.arch},
          {"entry", job.entry}};
}

Result<CompileJob> compile_job_from_json(const Json& json) {
  JsonReader reader(json, "compile_job");
  CompileJob job;
  TRY(check_type(reader, "compile"));
  TRY_ASSIGN(job.id, unsigned_of(reader, "id"));
  TRY_ASSIGN(job.name, reader.string("name"));
  TRY_ASSIGN(job.source_name, reader.string("source_name"));
  TRY_ASSIGN(job.source, reader.string("source"));
  TRY_ASSIGN(const Json* headers, reader.array("headers"));
  for (const auto& entry : *headers) {
    JsonReader header(entry, "compile_job.headers");
    TRY_ASSIGN(auto name, header.string("name"));
    TRY_ASSIGN(auto text, header.string("text"));
    TRY(header.finish());
    job.headers.emplace_back(std::move(name), std::move(text));
  }
  TRY_ASSIGN(job.options, reader.strings_or("options", {}));
  TRY_ASSIGN(job.arch, reader.string("arch"));
  TRY_ASSIGN(job.entry, reader.string("entry"));
  TRY(reader.finish());
  return job;
}

Json to_json(const CompileResult& result) {
  return {{"type", "compiled"},
          {"id", result.id},
          {"ok", result.ok},
          {"cubin", binary(result.cubin)},
          {"log", result.log},
          {"error", result.error},
          {"rejected", result.rejected},
          {"registers", result.registers},
          {"spill_bytes", result.spill_bytes},
          {"stack_bytes", result.stack_bytes},
          {"static_smem_bytes", result.static_smem_bytes},
          {"compile_ms", result.compile_ms}};
}

Result<CompileResult> compile_result_from_json(const Json& json) {
  JsonReader reader(json, "compile_result");
  CompileResult result;
  TRY(check_type(reader, "compiled"));
  TRY_ASSIGN(result.id, unsigned_of(reader, "id"));
  TRY_ASSIGN(result.ok, reader.boolean_or("ok", false));
  TRY_ASSIGN(result.cubin, binary_of(reader, "cubin"));
  TRY_ASSIGN(result.log, reader.string("log"));
  TRY_ASSIGN(result.error, reader.string("error"));
  TRY_ASSIGN(result.rejected, reader.string("rejected"));
  TRY_ASSIGN(result.registers, reader.integer("registers"));
  TRY_ASSIGN(result.spill_bytes, reader.integer("spill_bytes"));
  TRY_ASSIGN(result.stack_bytes, reader.integer("stack_bytes"));
  TRY_ASSIGN(result.static_smem_bytes, reader.integer("static_smem_bytes"));
  TRY_ASSIGN(result.compile_ms, reader.number("compile_ms"));
  TRY(reader.finish());
  return result;
}

Json to_json(const MeasureJob& job) {
  return {{"type", "measure"},
          {"id", job.id},
          {"variant", job.variant},
          {"problem_key", job.problem_key},
          {"op", job.op},
          {"problem", job.problem},
          {"recipe", to_json(job.recipe)},
          {"cubin", binary(job.cubin)},
          {"reference_entry", job.reference_entry},
          {"reference_cubin", binary(job.reference_cubin)},
          {"edges", job.edges},
          {"verify", job.verify},
          {"time", job.time},
          {"repeats", job.repeats},
          {"min_replay_us", job.min_replay_us},
          {"seed", job.seed},
          {"memory_limit_bytes", job.memory_limit_bytes}};
}

Result<MeasureJob> measure_job_from_json(const Json& json) {
  JsonReader reader(json, "measure_job");
  MeasureJob job;
  TRY(check_type(reader, "measure"));
  TRY_ASSIGN(job.id, unsigned_of(reader, "id"));
  TRY_ASSIGN(job.variant, reader.string("variant"));
  TRY_ASSIGN(job.problem_key, reader.string("problem_key"));
  TRY_ASSIGN(const Json* op, reader.object("op"));
  job.op = *op;
  TRY_ASSIGN(const Json* problem, reader.object("problem"));
  job.problem = *problem;
  TRY_ASSIGN(const Json* recipe, reader.object("recipe"));
  TRY_ASSIGN(job.recipe, recipe_from_json(*recipe));
  TRY_ASSIGN(job.cubin, binary_of(reader, "cubin"));
  TRY_ASSIGN(job.reference_entry, reader.string("reference_entry"));
  TRY_ASSIGN(job.reference_cubin, binary_of(reader, "reference_cubin"));
  TRY_ASSIGN(const Json* edges, reader.array("edges"));
  job.edges.assign(edges->begin(), edges->end());
  TRY_ASSIGN(job.verify, reader.boolean_or("verify", true));
  TRY_ASSIGN(job.time, reader.boolean_or("time", true));
  TRY_ASSIGN(job.repeats, reader.integer("repeats"));
  if (job.repeats < 1 || job.repeats > 10'000)
    return bad_input("measure_job.repeats", std::to_string(job.repeats), "from 1 to 10000");
  TRY_ASSIGN(job.min_replay_us, reader.number("min_replay_us"));
  if (!(job.min_replay_us > 0 && job.min_replay_us <= 1e6))
    return bad_input("measure_job.min_replay_us", std::to_string(job.min_replay_us), "above 0, at most 1e6");
  TRY_ASSIGN(job.seed, unsigned_of(reader, "seed"));
  TRY_ASSIGN(job.memory_limit_bytes, reader.integer("memory_limit_bytes"));
  if (job.memory_limit_bytes < 1)
    return bad_input("measure_job.memory_limit_bytes", std::to_string(job.memory_limit_bytes), "1 or more");
  TRY(reader.finish());
  return job;
}

Json to_json(const MeasureResult& result) {
  Json gates = Json::array();
  for (const auto& gate : result.gates)
    gates.push_back({{"gate", gate.gate}, {"passed", gate.passed}, {"detail", gate.detail}});
  return {{"type", "measured"},
          {"id", result.id},
          {"status", result.status},
          {"error", result.error},
          {"gates", gates},
          {"samples_us", result.samples_us},
          {"median_us", result.median_us},
          {"launches_per_replay", result.launches_per_replay},
          {"copies", result.copies},
          {"launch_floor_us", result.launch_floor_us},
          {"tainted", result.tainted},
          {"taint", result.taint},
          {"device_before", result.device_before},
          {"device_after", result.device_after},
          {"wall_ms", result.wall_ms}};
}

Result<MeasureResult> measure_result_from_json(const Json& json) {
  JsonReader reader(json, "measure_result");
  MeasureResult result;
  TRY(check_type(reader, "measured"));
  TRY_ASSIGN(result.id, unsigned_of(reader, "id"));
  TRY_ASSIGN(result.status, reader.string("status"));
  TRY_ASSIGN(result.error, reader.string("error"));
  TRY_ASSIGN(const Json* gates, reader.array("gates"));
  for (const auto& entry : *gates) {
    JsonReader gate_reader(entry, "measure_result.gates");
    GateResult gate;
    TRY_ASSIGN(gate.gate, gate_reader.string("gate"));
    TRY_ASSIGN(gate.passed, gate_reader.boolean_or("passed", false));
    TRY_ASSIGN(gate.detail, gate_reader.string("detail"));
    TRY(gate_reader.finish());
    result.gates.push_back(std::move(gate));
  }
  TRY_ASSIGN(result.samples_us, numbers(reader, "samples_us"));
  TRY_ASSIGN(result.median_us, reader.number("median_us"));
  TRY_ASSIGN(result.launches_per_replay, reader.integer("launches_per_replay"));
  TRY_ASSIGN(result.copies, reader.integer("copies"));
  TRY_ASSIGN(result.launch_floor_us, reader.number("launch_floor_us"));
  TRY_ASSIGN(result.tainted, reader.boolean_or("tainted", false));
  TRY_ASSIGN(result.taint, reader.string("taint"));
  TRY_ASSIGN(result.device_before, object_or_empty(reader, "device_before"));
  TRY_ASSIGN(result.device_after, object_or_empty(reader, "device_after"));
  TRY_ASSIGN(result.wall_ms, reader.number("wall_ms"));
  TRY(reader.finish());
  return result;
}

}  // namespace tunerd::wire
