#include <algorithm>
#include <array>

#include "readable.h"
#include "wire/messages.h"

namespace tunerd::wire {
namespace {

constexpr std::array<std::string_view, 4> kQualities{"exact", "near", "default", "fallback"};

Json number_or_null(double value) { return value > 0 ? Json(value) : Json(nullptr); }

// null and absence read as 0.
Result<double> number_or_zero(JsonReader& reader, const std::string& key) {
  const Json* value = reader.any(key);
  if (value == nullptr || value->is_null()) return 0.0;
  return reader.number(key);
}

Result<std::uint64_t> unsigned_integer(JsonReader& reader, const std::string& key) {
  const Json* value = reader.any(key);
  if (value != nullptr && value->is_number_unsigned()) return value->get<std::uint64_t>();
  TRY_ASSIGN(const std::int64_t number, reader.integer(key));
  if (number < 0) return bad_input(reader.path() + "." + key, std::to_string(number), "0 or more");
  return static_cast<std::uint64_t>(number);
}

Result<std::int64_t> size(JsonReader& reader, const std::string& key) {
  TRY_ASSIGN(const std::int64_t value, reader.integer_or(key, 0));
  if (value < 0) return bad_input(reader.path() + "." + key, std::to_string(value), "0 or more");
  return value;
}

}  // namespace

std::string_view to_string(Quality quality) { return kQualities.at(static_cast<std::size_t>(quality)); }

Result<Quality> quality_from_string(std::string_view text) {
  for (std::size_t i = 0; i < kQualities.size(); ++i)
    if (kQualities[i] == text) return static_cast<Quality>(i);
  return unknown_name("quality", std::string(text), std::vector<std::string>(kQualities.begin(), kQualities.end()));
}

Json to_json(const GetAnswer& answer) {
  const bool launchable = !answer.recipe.entry.empty();
  return {{"op", answer.op},
          {"problem", answer.problem},
          {"variant", answer.variant},
          {"quality", std::string(to_string(answer.quality))},
          {"source", answer.measured ? "measured" : "predicted"},
          {"t_sol_us", answer.sol.t_sol_us},
          {"time_us", number_or_null(answer.time_us)},
          {"sol_fraction", number_or_null(answer.sol_fraction)},
          {"bound", answer.sol.bound},
          {"flops", answer.sol.flops},
          {"bytes", answer.sol.bytes},
          {"device_class", answer.device_class},
          {"arch", answer.arch},
          {"generation", answer.generation},
          {"kernel_digest", answer.kernel_digest},
          {"cubin_bytes", answer.cubin_bytes},
          {"problem_json", answer.problem_json},
          {"launch", launchable ? readable_launch(answer.recipe, answer.problem_json) : Json(nullptr)},
          {"arguments", launchable ? readable_arguments(answer.recipe, answer.problem_json) : Json(nullptr)},
          {"recipe", launchable ? to_json(answer.recipe) : Json(nullptr)},
          {"note", answer.note}};
}

// Lenient about unknown keys: a newer daemon may say more.
Result<GetAnswer> get_answer_from_json(const Json& body) {
  JsonReader reader(body, "answer");
  GetAnswer answer;
  TRY_ASSIGN(answer.op, reader.string("op"));
  TRY_ASSIGN(answer.problem, reader.string("problem"));
  TRY_ASSIGN(answer.variant, reader.string("variant"));
  TRY_ASSIGN(const std::string quality, reader.string("quality"));
  TRY_ASSIGN(answer.quality, quality_from_string(quality));
  TRY_ASSIGN(const std::string source, reader.string("source"));
  if (source != "measured" && source != "predicted")
    return unknown_name("answer.source", source, {"measured", "predicted"});
  answer.measured = source == "measured";
  TRY_ASSIGN(answer.sol.t_sol_us, number_or_zero(reader, "t_sol_us"));
  TRY_ASSIGN(answer.time_us, number_or_zero(reader, "time_us"));
  TRY_ASSIGN(answer.sol_fraction, number_or_zero(reader, "sol_fraction"));
  TRY_ASSIGN(answer.sol.bound, reader.string_or("bound", ""));
  TRY_ASSIGN(answer.sol.flops, size(reader, "flops"));
  TRY_ASSIGN(answer.sol.bytes, size(reader, "bytes"));
  TRY_ASSIGN(answer.device_class, reader.string_or("device_class", ""));
  TRY_ASSIGN(answer.arch, reader.string_or("arch", ""));
  TRY_ASSIGN(answer.generation, unsigned_integer(reader, "generation"));
  TRY_ASSIGN(answer.kernel_digest, reader.string_or("kernel_digest", ""));
  TRY_ASSIGN(answer.cubin_bytes, size(reader, "cubin_bytes"));
  TRY_ASSIGN(const Json* problem, reader.object("problem_json"));
  answer.problem_json = *problem;
  if (const Json* recipe = reader.any("recipe"); recipe != nullptr && !recipe->is_null()) {
    TRY_ASSIGN(answer.recipe, recipe_from_json(*recipe));
  }
  TRY_ASSIGN(answer.note, reader.string_or("note", ""));
  return answer;
}

Json to_json(const TuneReport& report) {
  return {{"problem", report.problem},
          {"state", report.state},
          {"answer", to_json(report.answer)},
          {"considered", report.considered},
          {"valid", report.valid},
          {"compiled", report.compiled},
          {"rejected", report.rejected},
          {"measured", report.measured},
          {"wrong", report.wrong},
          {"faulted", report.faulted},
          {"wall_s", report.wall_s},
          {"compile_s", report.compile_s},
          {"measure_s", report.measure_s},
          {"stop_reason", report.stop_reason}};
}

Result<TuneReport> tune_report_from_json(const Json& body) {
  JsonReader reader(body, "report");
  TuneReport report;
  TRY_ASSIGN(report.problem, reader.string("problem"));
  TRY_ASSIGN(report.state, reader.string("state"));
  const std::vector<std::string> states{"tuned", "already", "predicted", "failed", "pending"};
  if (std::find(states.begin(), states.end(), report.state) == states.end())
    return unknown_name("report.state", report.state, states);
  // A report about a failure has an answer without problem_json: there is nothing to launch.
  if (const Json* answer = reader.any("answer"); answer != nullptr && answer->is_object()) {
    Json whole = *answer;
    if (const auto problem = whole.find("problem_json"); problem == whole.end() || problem->is_null())
      whole["problem_json"] = Json::object();
    TRY_ASSIGN(report.answer, get_answer_from_json(whole));
  }
  TRY_ASSIGN(report.considered, size(reader, "considered"));
  TRY_ASSIGN(report.valid, size(reader, "valid"));
  TRY_ASSIGN(report.compiled, size(reader, "compiled"));
  TRY_ASSIGN(report.rejected, size(reader, "rejected"));
  TRY_ASSIGN(report.measured, size(reader, "measured"));
  TRY_ASSIGN(report.wrong, size(reader, "wrong"));
  TRY_ASSIGN(report.faulted, size(reader, "faulted"));
  TRY_ASSIGN(report.wall_s, number_or_zero(reader, "wall_s"));
  TRY_ASSIGN(report.compile_s, number_or_zero(reader, "compile_s"));
  TRY_ASSIGN(report.measure_s, number_or_zero(reader, "measure_s"));
  TRY_ASSIGN(report.stop_reason, reader.string_or("stop_reason", ""));
  return report;
}

}  // namespace tunerd::wire
