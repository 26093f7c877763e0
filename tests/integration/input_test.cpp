#include "harness/check.h"
#include "wire/messages.h"

using namespace tunerd;
using namespace tunerd::test;

TEST_CASE("bad input is answered with field, value, expected and a near match, and the connection lives on") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client client = daemon.client();
  const auto get = [&](const std::string& op, Json fields) {
    return client.call("get", get_fields(op, std::move(fields)));
  };

  Error error = must_fail(get("twise", twice(16, 16)));
  CHECK(error.value == "twise");
  CHECK(error.suggestion == "twice");
  struct Bad {
    const char* field;
    Json value;
  };
  const Bad dimensions[] = {
      {"rows", 0},       {"rows", -4},           {"cols", (std::int64_t{1} << 31) + 1}, {"rows", 1.5}, {"rows", "many"},
      {"rows", nullptr}, {"cols", Json::array()}};
  for (const Bad& bad : dimensions) {
    Json problem = twice(16, 16);
    problem[bad.field] = bad.value;
    CAPTURE(bad.value.dump());
    error = must_fail(get("twice", problem));
    CHECK(error.code == Code::invalid_argument);
    CHECK(contains(error.field, bad.field));
    CHECK_FALSE(error.expected.empty());
  }
  Json problem = twice(16, 16);
  problem["dtype"] = "fp31";
  error = must_fail(get("twice", problem));
  CHECK(contains(error.field, "dtype"));
  CHECK(contains(error.expected, "fp32"));
  problem = twice(16, 16);
  problem["rowz"] = 3;
  error = must_fail(get("twice", problem));
  CHECK(error.suggestion == "rows");
  problem = twice(16, 16);
  problem["sign"] = "pluss";
  error = must_fail(get("twice", problem));
  CHECK(error.suggestion == "plus");
  problem = {{"rows", 16}, {"dtype", "fp32"}};
  error = must_fail(get("twice", problem));
  CHECK(contains(error.text(), "cols"));

  error = must_fail(client.call("get", {{"op", "twice"}, {"fields", twice(16, 16)}, {"wait", "noww"}}));
  CHECK(contains(error.field, "wait"));
  CHECK(error.suggestion == "now");
  error = must_fail(client.call("get", {{"op", "twice"}, {"fields", twice(16, 16)}, {"deadline_ms", 0}}));
  CHECK(contains(error.field, "deadline_ms"));
  error = must_fail(client.call("get", {{"op", "twice"}, {"fields", twice(16, 16)}, {"want_cubinn", true}}));
  CHECK(error.suggestion == "want_cubin");
  error = must_fail(client.call("gett", {{"op", "twice"}}));
  CHECK(error.suggestion == "get");
  error = must_fail(client.call("tune", {{"problem", twice_problem(0, 16)}, {"wait_ms", 1000}}));
  CHECK(contains(error.field, "rows"));
  error = must_fail(
      client.call("tune", {{"problem", twice_problem(16, 16)}, {"budget", {{"variants", 0}}}, {"wait_ms", 1}}));
  CHECK(contains(error.text(), "variants"));
  error = must_fail(client.call("explain", {{"problem", {{"rows", 16}}}}));
  CHECK(contains(error.text(), "op"));

  CHECK(must(get("twice", twice(16, 16))).fields["op"] == "twice");
}

TEST_CASE("hello comes first, and a version that nobody speaks is refused with both ranges named") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  {
    Client rude = must(Client::connect(daemon.socket()));
    const Error error = must_fail(rude.call("status"));
    CHECK(contains(error.text(), "hello"));
  }
  {
    Client future = must(Client::connect(daemon.socket()));
    const std::uint64_t next = wire::kProtocolVersion + 1;
    const Error error =
        must_fail(future.call("hello", {{"protocol_min", next}, {"protocol_max", next + 1}, {"client", "test"}}));
    CHECK(error.code == Code::unsupported);
    CHECK(contains(error.text(), std::to_string(next)));
    CHECK(contains(error.text(), std::to_string(wire::kProtocolVersion)));
    CHECK_FALSE(future.receive(5000));  // and it is closed
  }
  Client newer = must(Client::connect(daemon.socket()));
  const Reply hello = must(newer.call("hello", {{"protocol_min", 1}, {"protocol_max", 9}, {"client", "test"}}));
  CHECK(hello.fields["protocol"] == wire::kProtocolVersion);
  CHECK(hello.fields["offline"] == true);
  CHECK(hello.fields["pid"] == daemon.pid());
  CHECK(contains(hello.fields["device_class"], "offline/sm_90a"));
}

TEST_CASE("many requests are in flight on one connection, and each gets its own answer") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client client = daemon.client();
  constexpr std::uint64_t kRequests = 40;
  for (std::uint64_t id = 100; id < 100 + kRequests; ++id) {
    Json fields = get_fields("twice", twice(static_cast<std::int64_t>(id), 64));
    fields["tune"] = false;
    must(client.send(id, "get", fields));
  }
  std::map<std::uint64_t, Json> answers;
  for (std::uint64_t i = 0; i < kRequests; ++i) {
    Reply reply = must(client.receive());
    CHECK(reply.file.valid());
    answers[reply.fields["id"].get<std::uint64_t>()] = reply.fields;
  }
  REQUIRE(answers.size() == kRequests);
  for (const auto& [id, answer] : answers) {
    CHECK(answer["ok"] == true);
    CHECK(answer["problem_json"]["dims"]["rows"] == id);
  }
}

TEST_CASE("an id that is missing or zero is refused") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client client = daemon.client();
  must(wire::send_frame(client.socket(), Json{{"type", "status"}}));
  const Reply reply = must(client.receive());
  CHECK(reply.fields["ok"] == false);
  CHECK(contains(reply.fields["error"]["field"], "id"));
}
