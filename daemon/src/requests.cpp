#include "requests.h"

#include <unistd.h>

#include "cache/bundle.h"
#include "log.h"
#include "server.h"
#include "tuner.h"
#include "wire/frame.h"

namespace tunerd::daemon {
namespace {

using Handler = Task<Result<Reply>> (*)(Server&, Session&, const Json&, int);

constexpr std::int64_t kLongestWaitMs = 3'600'000;
constexpr std::int64_t kBundleBytes = std::int64_t{4} << 30;

JsonReader reader_of(const Json& body) {
  JsonReader reader(body, "request");
  reader.any("id");
  reader.any("type");
  return reader;
}

Result<std::pair<const OpEntry*, Problem>> problem_in(const Core& core, JsonReader& reader) {
  TRY_ASSIGN(const Json* problem, reader.object("problem"));
  return core.problem_of(*problem);
}

Task<Result<Reply>> hello(Server& server, Session& session, const Json& body, int) {
  auto reader = reader_of(body);
  const auto least = reader.integer("protocol_min"), most = reader.integer("protocol_max");
  const auto name = reader.string_or("client", "");
  if (!least) co_return Unexpected(least.error());
  if (!most) co_return Unexpected(most.error());
  if (!name) co_return Unexpected(name.error());
  if (auto done = reader.finish(); !done) co_return Unexpected(done.error());
  Reply reply;
  if (*most < wire::kProtocolOldest || *least > wire::kProtocolVersion) {
    Error error{Code::unsupported,
                "No common protocol version: the client speaks " + std::to_string(*least) + " to " +
                    std::to_string(*most) + ", tunerd " TUNERD_VERSION " speaks " +
                    std::to_string(wire::kProtocolOldest) + " to " + std::to_string(wire::kProtocolVersion),
                "protocol",
                std::to_string(*least) + " to " + std::to_string(*most),
                std::to_string(wire::kProtocolOldest) + " to " + std::to_string(wire::kProtocolVersion),
                {}};
    co_return Unexpected(std::move(error));
  }
  session.greeted(name->substr(0, 64));
  auto& core = server.core();
  reply.fields = {{"protocol", std::min<std::int64_t>(*most, wire::kProtocolVersion)},
                  {"server", std::string("tunerd ") + TUNERD_VERSION},
                  {"pid", ::getpid()},
                  {"device", core.product_name},
                  {"device_class", core.context.device_class.key()},
                  {"environment", core.context.environment.key()},
                  {"offline", !core.real_device()}};
  co_return reply;
}

Task<Result<Reply>> get(Server& server, Session& session, const Json& body, int) {
  const auto request = wire::get_request_from_json(body);
  if (!request) co_return Unexpected(request.error());
  // Before it is answered: tuning may end, and push, while the answer is still made.
  if (const auto found = server.core().problem_of(request->op, request->fields))
    session.asked_for(found->second.key(found->first->op));
  auto served = co_await server.ladder().get(*request);
  if (!served) co_return Unexpected(served.error());
  auto& core = server.core();
  // Tuned while this request waited for a compile: its push has gone out already, so an older answer must not follow
  // it.
  if (served->answer.quality != wire::Quality::exact && core.winner(served->answer.problem) != nullptr)
    if (const auto found = core.problem_of(request->op, request->fields))
      if (auto better = co_await server.ladder().ready(*found->first, found->second, request->want_cubin))
        served = std::move(better);
  Reply reply;
  reply.fields = wire::to_json(served->answer);
  reply.file = std::move(served->file);
  // Waiting for tuning could still change one that was only predicted.
  if (served->answer.quality == wire::Quality::exact && (served->answer.measured || request->wait != wire::Wait::tuned))
    reply.settled = served->answer.problem;
  co_return reply;
}

Result<Budget> budget_from(const Json& json, Budget budget) {
  JsonReader reader(json, "budget");
  TRY_ASSIGN(budget.variants, reader.integer_or("variants", budget.variants));
  TRY_ASSIGN(budget.seconds, reader.number_or("seconds", budget.seconds));
  TRY_ASSIGN(budget.sol_target, reader.number_or("sol_target", budget.sol_target));
  TRY_ASSIGN(budget.patience, reader.integer_or("patience", budget.patience));
  TRY(reader.finish());
  TRY(check_budget(budget));
  return budget;
}

Task<Result<Reply>> tune(Server& server, Session& session, const Json& body, int) {
  auto& core = server.core();
  auto reader = reader_of(body);
  const auto found = problem_in(core, reader);
  if (!found) co_return Unexpected(found.error());
  const auto wait_ms = reader.integer_or("wait_ms", 600'000);
  if (!wait_ms) co_return Unexpected(wait_ms.error());
  if (*wait_ms < 0 || *wait_ms > kLongestWaitMs)
    co_return bad_input("wait_ms", std::to_string(*wait_ms), "from 0 to 3600000");
  std::optional<Budget> budget;
  if (const Json* given = reader.any("budget")) {
    auto parsed = budget_from(*given, server.tuner().default_budget());
    if (!parsed) co_return Unexpected(parsed.error());
    budget = *parsed;
  }
  if (auto done = reader.finish(); !done) co_return Unexpected(done.error());
  const OpEntry& entry = *found->first;
  const Problem problem = found->second;
  auto report =
      co_await server.tuner().tune(entry, problem, budget, Clock::now() + std::chrono::milliseconds(*wait_ms));
  if (!report) co_return Unexpected(report.error());
  session.asked_for(report->problem);
  if (auto served = co_await server.ladder().ready(entry, problem, false)) report->answer = std::move(served->answer);
  Reply reply;
  reply.fields = wire::to_json(*report);
  co_return reply;
}

Task<Result<Reply>> subscribe(Server& server, Session& session, const Json& body, int) {
  auto reader = reader_of(body);
  std::optional<std::string> op;
  if (reader.has("op")) {
    auto name = reader.string("op");
    if (!name) co_return Unexpected(name.error());
    if (auto known = server.core().find_op(*name); !known) co_return Unexpected(known.error());
    op = *name;
  }
  if (auto done = reader.finish(); !done) co_return Unexpected(done.error());
  session.subscribe(std::move(op));
  co_return Reply{};
}

Task<Result<Reply>> status(Server& server, Session&, const Json& body, int) {
  auto reader = reader_of(body);
  if (auto done = reader.finish(); !done) co_return Unexpected(done.error());
  Reply reply;
  reply.fields = status_report(server);
  co_return reply;
}

Json winner_row(const cache::Winner& winner) {
  return {{"problem", winner.problem_key},
          {"op", winner.problem.op},
          {"variant", winner.variant},
          {"source", winner.measured ? "measured" : "predicted"},
          {"time_us", winner.measured ? Json(winner.time_us) : Json()},
          {"t_sol_us", winner.t_sol_us},
          {"sol_fraction", winner.measured ? Json(winner.sol_fraction) : Json()},
          {"generation", winner.generation},
          {"at", winner.at},
          {"device_class", winner.device_class_key},
          {"environment", winner.environment_key},
          {"from_base", winner.from_base}};
}

Task<Result<Reply>> list(Server& server, Session&, const Json& body, int) {
  auto reader = reader_of(body);
  const auto op = reader.string_or("op", "");
  if (!op) co_return Unexpected(op.error());
  if (auto done = reader.finish(); !done) co_return Unexpected(done.error());
  if (!op->empty())
    if (auto known = server.core().find_op(*op); !known) co_return Unexpected(known.error());
  auto winners = server.core().store->winners(server.core().context, *op);
  if (!winners) co_return Unexpected(winners.error());
  Reply reply;
  reply.fields["winners"] = Json::array();
  for (const auto& winner : *winners) reply.fields["winners"].push_back(winner_row(winner));
  co_return reply;
}

Json quarantine_row(const cache::QuarantineEntry& entry) {
  return {{"variant", entry.variant}, {"problem", entry.problem_key}, {"reason", entry.reason}, {"at", entry.at}};
}

Task<Result<Reply>> show(Server& server, Session&, const Json& body, int) {
  auto& core = server.core();
  auto reader = reader_of(body);
  const auto found = problem_in(core, reader);
  if (!found) co_return Unexpected(found.error());
  if (auto done = reader.finish(); !done) co_return Unexpected(done.error());
  const std::string key = found->second.key(found->first->op);
  auto samples = core.store->samples(core.context, key);
  if (!samples) co_return Unexpected(samples.error());
  Reply reply;
  if (const auto* winner = core.winner(key)) reply.fields["winner"] = winner_row(*winner);
  reply.fields["samples"] = Json::array();
  for (const auto& sample : *samples)
    reply.fields["samples"].push_back({{"variant", sample.variant},
                                       {"median_us", sample.median_us},
                                       {"samples_us", sample.samples_us},
                                       {"tainted", sample.tainted},
                                       {"taint", sample.taint},
                                       {"status", sample.status},
                                       {"error", sample.error},
                                       {"gates", sample.gates},
                                       {"launches_per_replay", sample.launches_per_replay},
                                       {"copies", sample.copies},
                                       {"launch_floor_us", sample.launch_floor_us},
                                       {"device_before", sample.device_before},
                                       {"device_after", sample.device_after},
                                       {"at", sample.at}});
  reply.fields["quarantine"] = Json::array();
  for (const auto& [name, entry] : core.quarantined())
    if (const auto variant = Variant::parse(entry.variant))
      for (const auto& source : found->first->templates)
        if (source.manifest.name == variant->template_name) reply.fields["quarantine"].push_back(quarantine_row(entry));
  co_return reply;
}

Task<Result<Reply>> explain(Server& server, Session&, const Json& body, int) {
  auto& core = server.core();
  auto reader = reader_of(body);
  const auto found = problem_in(core, reader);
  if (!found) co_return Unexpected(found.error());
  if (auto done = reader.finish(); !done) co_return Unexpected(done.error());
  auto explanation = core.store->explain(core.context, found->second, found->second.key(found->first->op),
                                         [&core](const std::string& name) {
                                           const auto source = core.catalog.find_template(name);
                                           return source ? (*source)->closure.digest : std::string();
                                         });
  if (!explanation) co_return Unexpected(explanation.error());
  Reply reply;
  reply.fields = {{"hit", explanation->hit}, {"nearest_key", explanation->nearest_key}, {"differences", Json::array()}};
  for (const auto& difference : explanation->differences)
    reply.fields["differences"].push_back(
        {{"field", difference.field}, {"there", difference.there}, {"here", difference.here}});
  co_return reply;
}

Task<Result<Reply>> variants(Server& server, Session&, const Json& body, int) {
  auto& core = server.core();
  auto reader = reader_of(body);
  const auto found = problem_in(core, reader);
  if (!found) co_return Unexpected(found.error());
  const auto arch = reader.string_or("arch", core.device.arch);
  if (!arch) co_return Unexpected(arch.error());
  if (auto done = reader.finish(); !done) co_return Unexpected(done.error());
  Result<std::shared_ptr<const Ranking>> ranking = Unexpected(Error{});
  if (full_arch(*arch) == core.device.arch) {
    ranking = co_await core.ranking(*found->first, found->second, found->second.key(found->first->op));
  } else {
    const auto other = representative_device(core.devices, *arch);
    if (!other) co_return Unexpected(other.error());
    ranking = co_await core.rank(*found->first, found->second, *other);
  }
  if (!ranking) co_return Unexpected(ranking.error());
  Reply reply;
  reply.fields["variants"] = Json::array();
  for (const auto& candidate : (*ranking)->space)
    reply.fields["variants"].push_back({{"variant", candidate.variant.text()},
                                        {"valid", candidate.valid},
                                        {"reason", candidate.reason},
                                        {"predicted_us", candidate.valid ? Json(candidate.predicted_us) : Json()}});
  co_return reply;
}

Task<Result<Reply>> quarantine(Server& server, Session&, const Json& body, int) {
  auto reader = reader_of(body);
  if (auto done = reader.finish(); !done) co_return Unexpected(done.error());
  Reply reply;
  reply.fields["variants"] = Json::array();
  for (const auto& [name, entry] : server.core().quarantined())
    reply.fields["variants"].push_back(quarantine_row(entry));
  co_return reply;
}

Task<Result<Reply>> export_winners(Server& server, Session&, const Json& body, int) {
  auto reader = reader_of(body);
  if (auto done = reader.finish(); !done) co_return Unexpected(done.error());
  auto bundle = cache::export_bundle(*server.core().store);
  if (!bundle) co_return Unexpected(bundle.error());
  const std::string bytes = cache::encode_bundle(*bundle);
  auto file = SealedFile::make(bytes);
  if (!file) co_return Unexpected(file.error());
  Reply reply;
  reply.fields = {{"winners", bundle->winners.size()}, {"bytes", bytes.size()}};
  reply.file = std::move(*file);
  co_return reply;
}

Task<Result<Reply>> import_winners(Server& server, Session&, const Json& body, int fd) {
  if (fd < 0) co_return bad_input("file", "", "the bundle's descriptor, passed with the frame");
  auto bytes = read_passed_file(fd, kBundleBytes);
  if (!bytes) co_return Unexpected(bytes.error());
  auto reader = reader_of(body);
  if (auto done = reader.finish(); !done) co_return Unexpected(done.error());
  const auto bundle = cache::decode_bundle(*bytes);
  if (!bundle) co_return Unexpected(bundle.error());
  auto report = cache::import_bundle(*server.core().store, *bundle);
  if (!report) co_return Unexpected(report.error());
  if (auto loaded = server.core().reload_winners(); !loaded) co_return Unexpected(loaded.error());
  Reply reply;
  reply.fields = {{"imported", report->imported}, {"kept", report->kept}, {"skipped", report->skipped}};
  co_return reply;
}

Task<Result<Reply>> stop(Server&, Session&, const Json& body, int) {
  auto reader = reader_of(body);
  if (auto done = reader.finish(); !done) co_return Unexpected(done.error());
  Reply reply;
  reply.stop = true;
  co_return reply;
}

struct Entry {
  const char* type;
  Handler handler;
  bool privileged;
  bool takes_file;
};
constexpr Entry kHandlers[] = {{"hello", hello, false, false},
                               {"get", get, false, false},
                               {"tune", tune, false, false},
                               {"subscribe", subscribe, false, false},
                               {"status", status, false, false},
                               {"list", list, false, false},
                               {"show", show, false, false},
                               {"explain", explain, false, false},
                               {"variants", variants, false, false},
                               {"quarantine", quarantine, false, false},
                               {"export", export_winners, true, false},
                               {"import", import_winners, true, true},
                               {"stop", stop, true, false}};

}  // namespace

Task<Result<Reply>> answer_request(Server& server, Session& session, const Json& body, int fd) {
  const auto type = body.find("type");
  const std::string name = type != body.end() && type->is_string() ? type->get<std::string>() : "";
  std::vector<std::string> known;
  for (const auto& entry : kHandlers) {
    known.emplace_back(entry.type);
    if (name != entry.type) continue;
    if (fd >= 0 && !entry.takes_file) ::close(fd);
    if (entry.privileged && !session.peer().privileged) {
      if (fd >= 0 && entry.takes_file) ::close(fd);
      co_return fail(Code::denied, name + " is for the daemon's own user and root");
    }
    co_return co_await entry.handler(server, session, body, fd);
  }
  if (fd >= 0) ::close(fd);
  co_return unknown_name("type", name.substr(0, 64), known);
}

}  // namespace tunerd::daemon
