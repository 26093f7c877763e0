// Messages between clients and the daemon. docs/protocol.md is this page in prose. Every request carries "id"
// (client-chosen, u64) and "type"; its replies carry the same "id". Unknown fields in a request are errors that suggest
// the nearest.
//
// request types and their reply fields (all replies: id, ok; on failure: error
// {code,message,field,value,expected,suggestion}):
//   hello      {protocol_min, protocol_max, client}  -> {protocol, server, pid, device, device_class, environment,
//   offline} get        GetRequest                            -> GetAnswer (+ the cubin as a sealed memfd when
//   want_cubin) tune       {problem, budget?, wait_ms}           -> TuneReport; waits for the tuning to end, at most
//   wait_ms subscribe  {op?}                                 -> {}; then pushes {type:"upgrade", answer: GetAnswer
//   without cubin} for problems this
//                                                       session asked for (all of op's when given), id 0
//   status     {}                                    -> StatusReport (a free-form object, documented in
//   docs/protocol.md) list       {op?}                                 -> {winners:[WinnerRow]} show       {problem} ->
//   {winner?, samples:[…], quarantine:[…]} explain    {problem}                             -> {hit: bool,
//   nearest_key?, differences:[{field, there, here}]} variants   {problem, arch?}                      ->
//   {variants:[{variant, valid, reason, predicted_us}]} export     {}                                    -> {winners,
//   bytes} + bundle as sealed memfd   (same uid or root) import     {} + bundle fd                        -> {imported,
//   kept, skipped:[…]}               (same uid or root) quarantine {}                                    ->
//   {variants:[{variant, problem, reason, at}]} stop       {}                                    -> {} then the daemon
//   ends                     (same uid or root)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/problem.h"
#include "model/recipe.h"
#include "model/sol.h"

namespace tunerd::wire {

enum class Wait { now, tuned, cached };
std::string_view to_string(Wait wait);
Result<Wait> wait_from_string(std::string_view text);

// The problem travels as users write it: a flat object checked by make_problem in the daemon.
struct GetRequest {
  std::string op;
  Json fields = Json::object();  // {"m":16,…,"dtype":"bf16"}
  Wait wait = Wait::now;
  std::int64_t deadline_ms = 60'000;  // of the whole request; at most 3,600,000
  bool want_cubin = true;
  bool tune = true;  // let a miss start background tuning
};
Json to_json(const GetRequest& request);                     // without id and type
Result<GetRequest> get_request_from_json(const Json& body);  // skips id and type

enum class Quality { exact, near, default_, fallback };
std::string_view to_string(Quality quality);  // exact | near | default | fallback
Result<Quality> quality_from_string(std::string_view text);

struct GetAnswer {
  std::string op;
  std::string problem;  // key
  std::string variant;  // text
  Quality quality = Quality::default_;
  bool measured = false;  // source: "measured" | "predicted"
  Sol sol;
  double time_us = 0;        // 0: not measured on this problem (null in JSON)
  double sol_fraction = 0;   // 0: null in JSON
  std::string device_class;  // key
  std::string arch;
  std::uint64_t generation = 0;  // raised each time the served kernel of this problem changes
  std::string kernel_digest;     // sha256 of the cubin
  std::int64_t cubin_bytes = 0;
  Json problem_json;  // Problem::to_json
  Recipe recipe;
  std::string note;  // e.g. "tuning queued", "near: gemm{m=32,…}"; may be empty
};
// Keys as scripts see them: op, problem, variant, quality, source, t_sol_us, time_us|null, sol_fraction|null, bound,
// flops, bytes, device_class, arch, generation, kernel_digest, cubin_bytes, problem_json, launch, arguments, recipe,
// note.
Json to_json(const GetAnswer& answer);
Result<GetAnswer> get_answer_from_json(const Json& body);

struct TuneReport {
  std::string problem;
  std::string state;  // "tuned" | "already" | "predicted" | "failed" | "pending"
  GetAnswer answer;   // what is served now (without recipe when failed)
  std::int64_t considered = 0, valid = 0, compiled = 0, rejected = 0, measured = 0, wrong = 0, faulted = 0;
  double wall_s = 0, compile_s = 0, measure_s = 0;
  std::string stop_reason;
};
Json to_json(const TuneReport& report);
Result<TuneReport> tune_report_from_json(const Json& body);

Json to_json(const Error& error);
Error error_from_json(const Json& body);
Json ok_reply(std::uint64_t id, Json fields);            // adds id, ok = true
Json error_reply(std::uint64_t id, const Error& error);  // id, ok = false, error
// The reply's fields, or its error.
Result<Json> unwrap_reply(Json body);

}  // namespace tunerd::wire
