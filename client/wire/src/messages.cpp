#include "wire/messages.h"

#include <array>

namespace tunerd::wire {
namespace {

constexpr std::int64_t kMaxDeadlineMs = 3'600'000;

template <class Enum, std::size_t N>
Result<Enum> from_names(const std::array<std::string_view, N>& names, std::string_view text, const char* field) {
  for (std::size_t i = 0; i < N; ++i)
    if (names[i] == text) return static_cast<Enum>(i);
  return unknown_name(field, std::string(text), std::vector<std::string>(names.begin(), names.end()));
}

constexpr std::array<std::string_view, 3> kWaits{"now", "tuned", "cached"};

}  // namespace

std::string_view to_string(Wait wait) { return kWaits.at(static_cast<std::size_t>(wait)); }
Result<Wait> wait_from_string(std::string_view text) { return from_names<Wait>(kWaits, text, "wait"); }

Json to_json(const GetRequest& request) {
  return {{"op", request.op},
          {"fields", request.fields},
          {"wait", std::string(to_string(request.wait))},
          {"deadline_ms", request.deadline_ms},
          {"want_cubin", request.want_cubin},
          {"tune", request.tune}};
}

Result<GetRequest> get_request_from_json(const Json& body) {
  JsonReader reader(body, "get");
  reader.any("id");
  reader.any("type");
  GetRequest request;
  TRY_ASSIGN(request.op, reader.string("op"));
  if (request.op.empty()) return bad_input("get.op", "an empty string", "the name of an op");
  TRY_ASSIGN(const Json* fields, reader.object("fields"));
  request.fields = *fields;
  TRY_ASSIGN(const std::string wait, reader.string_or("wait", "now"));
  TRY_ASSIGN(request.wait, wait_from_string(wait));
  TRY_ASSIGN(request.deadline_ms, reader.integer_or("deadline_ms", request.deadline_ms));
  if (request.deadline_ms < 1 || request.deadline_ms > kMaxDeadlineMs)
    return bad_input("get.deadline_ms", std::to_string(request.deadline_ms), "1 to " + std::to_string(kMaxDeadlineMs));
  TRY_ASSIGN(request.want_cubin, reader.boolean_or("want_cubin", request.want_cubin));
  TRY_ASSIGN(request.tune, reader.boolean_or("tune", request.tune));
  TRY(reader.finish());
  return request;
}

Json to_json(const Error& error) {
  return {{"code", std::string(to_string(error.code))},
          {"message", error.message},
          {"field", error.field},
          {"value", error.value},
          {"expected", error.expected},
          {"suggestion", error.suggestion}};
}

Error error_from_json(const Json& body) {
  Error error;
  if (!body.is_object()) {
    error.message = "the peer sent an error that is not an object";
    return error;
  }
  const auto text = [&](const char* key) {
    const auto found = body.find(key);
    return found != body.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  error.code = code_from_string(text("code"));
  error.message = text("message");
  if (error.message.empty()) error.message = "the peer sent an error without a message";
  error.field = text("field");
  error.value = text("value");
  error.expected = text("expected");
  error.suggestion = text("suggestion");
  return error;
}

Json ok_reply(std::uint64_t id, Json fields) {
  if (!fields.is_object()) fields = Json::object();
  fields["id"] = id;
  fields["ok"] = true;
  return fields;
}

Json error_reply(std::uint64_t id, const Error& error) {
  return {{"id", id}, {"ok", false}, {"error", to_json(error)}};
}

Result<Json> unwrap_reply(Json body) {
  const auto malformed = [](std::string value, std::string expected) {
    return Unexpected(
        Error{Code::corrupt, "the peer's reply is not one", "ok", std::move(value), std::move(expected), {}});
  };
  if (!body.is_object()) return malformed(body.type_name(), "an object");
  const auto ok = body.find("ok");
  if (ok == body.end() || !ok->is_boolean())
    return malformed(ok == body.end() ? "nothing" : ok->type_name(), "true or false");
  if (!ok->get<bool>()) {
    const auto error = body.find("error");
    return Unexpected(error_from_json(error == body.end() ? Json() : *error));
  }
  body.erase("ok");
  body.erase("id");
  return body;
}

}  // namespace tunerd::wire
