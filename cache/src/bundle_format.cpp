#include "bundle_format.h"

#include "model/digest.h"
#include "store_impl.h"

namespace tunerd::cache {
namespace {

Json to_json(const Artifact& artifact) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(artifact.cubin.data());
  return {{"kernel_key", artifact.kernel_key},
          {"digest", artifact.digest},
          {"cubin", Json::binary(std::vector<std::uint8_t>(bytes, bytes + artifact.cubin.size()))},
          {"entry", artifact.entry},
          {"arch", artifact.arch},
          {"nvrtc", artifact.nvrtc},
          {"variant", artifact.variant},
          {"registers", artifact.registers},
          {"spill_bytes", artifact.spill_bytes},
          {"stack_bytes", artifact.stack_bytes},
          {"static_smem_bytes", artifact.static_smem_bytes},
          {"compile_ms", artifact.compile_ms},
          {"log", artifact.log}};
}

Result<Artifact> artifact_from_json(const Json& json, const std::string& path) {
  JsonReader reader(json, path);
  Artifact artifact;
  TRY_ASSIGN(artifact.kernel_key, reader.string("kernel_key"));
  TRY_ASSIGN(artifact.digest, reader.string("digest"));
  const Json* cubin = reader.any("cubin");
  if (cubin == nullptr || !cubin->is_binary()) return bad_input(path + ".cubin", "no byte string", "a byte string");
  artifact.cubin.assign(cubin->get_binary().begin(), cubin->get_binary().end());
  TRY_ASSIGN(artifact.entry, reader.string("entry"));
  TRY_ASSIGN(artifact.arch, reader.string("arch"));
  TRY_ASSIGN(artifact.nvrtc, reader.string("nvrtc"));
  TRY_ASSIGN(artifact.variant, reader.string("variant"));
  TRY_ASSIGN(artifact.registers, reader.integer("registers"));
  TRY_ASSIGN(artifact.spill_bytes, reader.integer("spill_bytes"));
  TRY_ASSIGN(artifact.stack_bytes, reader.integer("stack_bytes"));
  TRY_ASSIGN(artifact.static_smem_bytes, reader.integer("static_smem_bytes"));
  TRY_ASSIGN(artifact.compile_ms, reader.number("compile_ms"));
  TRY_ASSIGN(artifact.log, reader.string("log"));
  TRY(reader.finish());
  return artifact;
}

Json to_json(const Sample& sample) {
  return {{"variant", sample.variant},
          {"template_digest", sample.template_digest},
          {"median_us", sample.median_us},
          {"samples_us", sample.samples_us},
          {"tainted", sample.tainted},
          {"taint", sample.taint},
          {"status", sample.status},
          {"error", sample.error},
          {"gates", sample.gates},
          {"device_before", sample.device_before},
          {"device_after", sample.device_after},
          {"launches_per_replay", sample.launches_per_replay},
          {"copies", sample.copies},
          {"launch_floor_us", sample.launch_floor_us},
          {"at", sample.at}};
}

Result<Sample> sample_from_json(const Json& json, const std::string& path) {
  JsonReader reader(json, path);
  Sample sample;
  TRY_ASSIGN(sample.variant, reader.string("variant"));
  TRY_ASSIGN(sample.template_digest, reader.string("template_digest"));
  TRY_ASSIGN(sample.median_us, reader.number("median_us"));
  TRY_ASSIGN(const Json* times, reader.array("samples_us"));
  for (const Json& time : *times) {
    if (!time.is_number()) return bad_input(path + ".samples_us", dump_text(time), "numbers");
    sample.samples_us.push_back(time.get<double>());
  }
  TRY_ASSIGN(sample.tainted, reader.boolean_or("tainted", false));
  TRY_ASSIGN(sample.taint, reader.string("taint"));
  TRY_ASSIGN(sample.status, reader.string("status"));
  TRY_ASSIGN(sample.error, reader.string("error"));
  for (auto [key, out] : {std::pair{"gates", &sample.gates}, std::pair{"device_before", &sample.device_before},
                          std::pair{"device_after", &sample.device_after}}) {
    if (const Json* value = reader.any(key)) *out = *value;
  }
  TRY_ASSIGN(sample.launches_per_replay, reader.integer("launches_per_replay"));
  TRY_ASSIGN(sample.copies, reader.integer("copies"));
  TRY_ASSIGN(sample.launch_floor_us, reader.number("launch_floor_us"));
  TRY_ASSIGN(sample.at, reader.string("at"));
  TRY(reader.finish());
  return sample;
}

Json to_json(const Winner& winner) {
  return {{"problem", winner.problem.to_json()},
          {"problem_key", winner.problem_key},
          {"variant", winner.variant},
          {"template_digest", winner.template_digest},
          {"kernel_key", winner.kernel_key},
          {"kernel_digest", winner.kernel_digest},
          {"measured", winner.measured},
          {"time_us", winner.time_us},
          {"t_sol_us", winner.t_sol_us},
          {"sol_fraction", winner.sol_fraction},
          {"generation", winner.generation},
          {"recipe", winner.recipe},
          {"at", winner.at}};
}

Result<Winner> winner_from_json(const Json& json, const std::string& path) {
  JsonReader reader(json, path);
  Winner winner;
  TRY_ASSIGN(const Json* problem, reader.object("problem"));
  TRY_ASSIGN(winner.problem, problem_from_row(dump_text(*problem)));
  TRY_ASSIGN(winner.problem_key, reader.string("problem_key"));
  TRY_ASSIGN(winner.variant, reader.string("variant"));
  TRY_ASSIGN(winner.template_digest, reader.string("template_digest"));
  TRY_ASSIGN(winner.kernel_key, reader.string("kernel_key"));
  TRY_ASSIGN(winner.kernel_digest, reader.string("kernel_digest"));
  TRY_ASSIGN(winner.measured, reader.boolean_or("measured", false));
  TRY_ASSIGN(winner.time_us, reader.number("time_us"));
  TRY_ASSIGN(winner.t_sol_us, reader.number("t_sol_us"));
  TRY_ASSIGN(winner.sol_fraction, reader.number("sol_fraction"));
  TRY_ASSIGN(const std::int64_t generation, reader.integer("generation"));
  if (generation < 0) return bad_input(path + ".generation", std::to_string(generation), "zero or more");
  winner.generation = std::uint64_t(generation);
  if (const Json* recipe = reader.any("recipe")) winner.recipe = *recipe;
  TRY_ASSIGN(winner.at, reader.string("at"));
  TRY(reader.finish());
  return winner;
}

// What one part says of another; a bundle that contradicts itself was not written by export.
Status check_consistent(const BundleWinner& entry, const std::string& path) {
  const Winner& winner = entry.winner;
  const Artifact& artifact = entry.artifact;
  const auto same = [&](const char* field, const std::string& value, const std::string& expected) -> Status {
    return value == expected ? Status{} : bad_input(path + "." + field, value, expected);
  };
  if (winner.problem_key.rfind(winner.problem.op + "{", 0) != 0) {
    return bad_input(path + ".problem_key", winner.problem_key, "a key of op " + winner.problem.op);
  }
  if (winner.measured && entry.context.device_class.kind != "cuda") {
    return bad_input(path + ".measured", "true on device kind " + entry.context.device_class.kind,
                     "false: only a real device measures");
  }
  TRY(same("artifact.kernel_key", artifact.kernel_key, winner.kernel_key));
  TRY(same("artifact.digest", artifact.digest, winner.kernel_digest));
  if (artifact.cubin.empty()) return {};
  TRY(same("artifact.digest", artifact.digest, sha256_hex(artifact.cubin)));
  TRY(same("artifact.arch", artifact.arch, entry.context.device_class.arch));
  return same("artifact.variant", artifact.variant, winner.variant);
}

Result<BundleWinner> entry_from_json(const Json& json, const std::string& path) {
  JsonReader reader(json, path);
  BundleWinner entry;
  TRY_ASSIGN(const Json* device_class, reader.object("device_class"));
  TRY_ASSIGN(entry.context.device_class, device_class_from_json(*device_class));
  TRY_ASSIGN(const Json* environment, reader.object("environment"));
  TRY_ASSIGN(entry.context.environment, environment_from_json(*environment));
  TRY_ASSIGN(const Json* winner, reader.object("winner"));
  TRY_ASSIGN(entry.winner, winner_from_json(*winner, path + ".winner"));
  entry.winner.device_class_key = entry.context.device_class.key();
  entry.winner.environment_key = entry.context.environment.key();
  TRY_ASSIGN(const Json* samples, reader.array("samples"));
  for (std::size_t i = 0; i < samples->size(); ++i) {
    TRY_ASSIGN(Sample sample, sample_from_json((*samples)[i], path + ".samples[" + std::to_string(i) + "]"));
    entry.samples.push_back(std::move(sample));
  }
  TRY_ASSIGN(const Json* artifact, reader.object("artifact"));
  TRY_ASSIGN(entry.artifact, artifact_from_json(*artifact, path + ".artifact"));
  TRY(reader.finish());
  TRY(check_consistent(entry, path));
  return entry;
}

}  // namespace

Json bundle_to_json(const Bundle& bundle) {
  Json winners = Json::array();
  for (const BundleWinner& entry : bundle.winners) {
    Json samples = Json::array();
    for (const Sample& sample : entry.samples) samples.push_back(to_json(sample));
    winners.push_back({{"device_class", tunerd::to_json(entry.context.device_class)},
                       {"environment", tunerd::to_json(entry.context.environment)},
                       {"winner", to_json(entry.winner)},
                       {"samples", std::move(samples)},
                       {"artifact", to_json(entry.artifact)}});
  }
  return {{"created_at", bundle.created_at}, {"created_by", bundle.created_by}, {"winners", std::move(winners)}};
}

Result<Bundle> bundle_from_json(const Json& body) {
  JsonReader reader(body, "bundle");
  Bundle bundle;
  TRY_ASSIGN(bundle.created_at, reader.string("created_at"));
  TRY_ASSIGN(bundle.created_by, reader.string("created_by"));
  TRY_ASSIGN(const Json* winners, reader.array("winners"));
  for (std::size_t i = 0; i < winners->size(); ++i) {
    TRY_ASSIGN(BundleWinner entry, entry_from_json((*winners)[i], "bundle.winners[" + std::to_string(i) + "]"));
    bundle.winners.push_back(std::move(entry));
  }
  TRY(reader.finish());
  return bundle;
}

}  // namespace tunerd::cache
