#include <doctest/doctest.h>

#include "fake_daemon.h"
#include "tuner.hpp"

using namespace tunerd;

namespace {

tuner_error_parts last_parts() {
  tuner_error_parts parts{};
  parts.struct_size = sizeof parts;
  REQUIRE(tuner_last_error_parts(nullptr, &parts) == TUNER_OK);
  return parts;
}

int connect(const std::string& path, tuner_client** client, std::int64_t deadline_ms = 0) {
  tuner_options options = TUNER_OPTIONS_INIT;
  options.socket_path = path.c_str();
  options.deadline_ms = deadline_ms;
  return tuner_connect(&options, client);
}

}  // namespace

TEST_CASE("without a daemon connecting is an error that names the socket") {
  tuner_client* client = nullptr;
  CHECK(connect("/tmp/no-such-folder/tunerd.sock", &client) == TUNER_IO);
  CHECK(client == nullptr);
  CHECK(last_parts().field == std::string("socket"));
  CHECK(last_parts().value == std::string("/tmp/no-such-folder/tunerd.sock"));
  CHECK(std::string(tuner_last_error(nullptr)).find("/tmp/no-such-folder/tunerd.sock") != std::string::npos);
}

TEST_CASE("a socket path longer than the system takes is an error that says how long it may be") {
  tuner_client* client = nullptr;
  CHECK(connect("/tmp/" + std::string(200, 'x'), &client) == TUNER_INVALID_ARGUMENT);
  CHECK(std::string(last_parts().expected).find("107") != std::string::npos);
}

TEST_CASE("a daemon of another protocol version is an error that names both versions") {
  FakeDaemon daemon;
  daemon.protocol = 7;
  tuner_client* client = nullptr;
  CHECK(connect(daemon.path(), &client) == TUNER_UNSUPPORTED);
  CHECK(last_parts().field == std::string("protocol"));
  CHECK(last_parts().value == std::string("7"));
  CHECK(last_parts().expected == std::string("1 to 1"));
}

TEST_CASE("a daemon's refusal of the hello is passed on in its own words") {
  FakeDaemon daemon;
  daemon.hello = [](const Json& request) {
    return wire::error_reply(request["id"], Error{Code::unsupported, "too old", "protocol_max", "1", "2 or more", {}});
  };
  tuner_client* client = nullptr;
  CHECK(connect(daemon.path(), &client) == TUNER_UNSUPPORTED);
  CHECK(last_parts().field == std::string("protocol_max"));
}

TEST_CASE("the hello names the versions spoken and the client") {
  FakeDaemon daemon;
  Json seen;
  daemon.hello = [&](const Json& request) {
    seen = request;
    return wire::ok_reply(request["id"], {{"protocol", 1}});
  };
  const tuner::Client client(daemon.path(), "my-service");
  CHECK(seen["type"] == "hello");
  CHECK(seen["protocol_min"] == wire::kProtocolOldest);
  CHECK(seen["protocol_max"] == wire::kProtocolVersion);
  CHECK(seen["client"] == "my-service");
}

TEST_CASE("a daemon that answers garbage to the hello is an error, not a crash") {
  for (const Json& answer :
       {Json::object(), Json{{"id", 1}}, Json{{"id", "one"}, {"ok", true}}, Json{{"id", 1}, {"ok", true}},
        Json{{"id", 1}, {"ok", true}, {"protocol", "x"}}, Json{{"id", 2}, {"ok", true}, {"protocol", 1}}}) {
    FakeDaemon daemon;
    daemon.hello = [&](const Json&) { return answer; };
    tuner_client* client = nullptr;
    const int status = connect(daemon.path(), &client);
    CHECK((status == TUNER_CORRUPT || status == TUNER_UNSUPPORTED));
  }
}

TEST_CASE("something that is no daemon is an error within the deadline") {
  char folder[] = "/tmp/tuner-test-XXXXXX";
  REQUIRE(::mkdtemp(folder) != nullptr);
  const std::string path = std::string(folder) + "/silent.sock";
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(listener, 1) == 0);
  tuner_client* client = nullptr;
  CHECK(connect(path, &client, 50) == TUNER_DEADLINE);
  ::close(listener);
  std::filesystem::remove_all(folder);
}

TEST_CASE("options out of bounds, a wrong struct_size and null arguments are errors that name them") {
  tuner_client* client = nullptr;
  tuner_options options = TUNER_OPTIONS_INIT;
  options.deadline_ms = -1;
  CHECK(tuner_connect(&options, &client) == TUNER_INVALID_ARGUMENT);
  CHECK(last_parts().field == std::string("deadline_ms"));
  options = TUNER_OPTIONS_INIT;
  options.struct_size = 0;
  CHECK(tuner_connect(&options, &client) == TUNER_INVALID_ARGUMENT);
  CHECK(last_parts().field == std::string("tuner_options.struct_size"));
  CHECK(tuner_connect(nullptr, nullptr) == TUNER_INVALID_ARGUMENT);
  CHECK(last_parts().field == std::string("client"));
  CHECK(tuner_close(nullptr) == TUNER_OK);
  tuner_kernel_release(nullptr);
}

TEST_CASE("options of an older, shorter version of the struct are read as far as they go") {
  FakeDaemon daemon;
  tuner_options options = TUNER_OPTIONS_INIT;
  options.struct_size = offsetof(tuner_options, client_name);
  options.socket_path = daemon.path().c_str();
  options.deadline_ms = -1;  // past the old end: not looked at
  tuner_client* client = nullptr;
  CHECK(tuner_connect(&options, &client) == TUNER_OK);
  CHECK(tuner_connected(client) == 1);
  CHECK(tuner_close(client) == TUNER_OK);
}
