#include "daemon/config.h"

#include <doctest/doctest.h>

using namespace tunerd;
using namespace tunerd::daemon;

namespace {

Error refused(const Status& status) {
  REQUIRE_FALSE(status);
  return status.error();
}

Config with_paths() {
  Config config;
  config.socket = "/run/x.sock";
  config.cache = "/var/x";
  config.templates = {"/t"};
  return config;
}

}  // namespace

TEST_CASE("the shipped example holds every default, and says what every field is") {
  const auto document = read_json_file(TUNERD_SOURCE_DIR "/config/tunerd.json");
  REQUIRE(document);
  Config config;
  REQUIRE(apply_file(*document, "tunerd.json", config));
  CHECK(to_json(config) == to_json(Config{}));
  const Json defaults = to_json(Config{});
  for (const auto& [name, value] : defaults.items()) {
    CAPTURE(name);
    CHECK((*document)["//"].contains(name));
    const bool path = name == "socket" || name == "cache" || name == "templates" || name == "devices";
    CHECK(document->contains(name) == !path);
  }
}

TEST_CASE("what is printed reads back to the same") {
  Config config = with_paths();
  config.offline = "sm_80";
  config.budget_seconds = 1.5;
  config.templates = {"/a", "/b"};
  Config again;
  REQUIRE(apply_file(to_json(config), "printed", again));
  CHECK(to_json(again) == to_json(config));
}

TEST_CASE("an unknown key names its place and suggests the nearest") {
  Config config;
  const Error error = refused(apply_file(Json{{"budget_varaints", 3}}, "tunerd.json", config));
  CHECK(error.field.find("tunerd.json") != std::string::npos);
  CHECK(error.value == "budget_varaints");
  CHECK(error.suggestion == "budget_variants");
}

TEST_CASE("a value of the wrong kind names field, value and kind") {
  Config config;
  const std::vector<std::pair<std::string, std::string>> cases{
      {"workers", R"("two")"},    {"workers", "1.5"},   {"socket", "7"},       {"tune", "1"},
      {"templates", R"("/one")"}, {"templates", "[1]"}, {"sol_target", "null"}};
  for (const auto& [field, text] : cases) {
    const std::string document = "{\"" + field + "\": " + text + "}";
    CAPTURE(document);
    const Error error = refused(apply_file(Json::parse(document), "file", config));
    CHECK_FALSE(error.value.empty());
    CHECK_FALSE(error.expected.empty());
    CHECK(error.field.find(field) != std::string::npos);
  }
}

TEST_CASE("every field can come from the environment, SOL_TARGET too") {
  Config config;
  REQUIRE(apply_environment({{"SOL_TARGET", "0.5"},
                             {"TUNERD_WORKERS", "3"},
                             {"TUNERD_TUNE", "false"},
                             {"TUNERD_TEMPLATES", "/a:/b"},
                             {"TUNERD_CACHE", "/12"},
                             {"PATH", "/bin"}},
                            config));
  CHECK(config.sol_target == 0.5);
  CHECK(config.workers == 3);
  CHECK_FALSE(config.tune);
  CHECK(config.templates == std::vector<std::filesystem::path>{"/a", "/b"});
  CHECK(config.cache == "/12");
  CHECK(refused(apply_environment({{"TUNERD_WORKRES", "3"}}, config)).suggestion == "workers");
  CHECK(refused(apply_environment({{"TUNERD_WORKERS", "many"}}, config)).value.find("many") != std::string::npos);
}

TEST_CASE("values out of range are refused by name") {
  const std::vector<std::string> cases{R"({"workers": -1})",        R"({"device": -1})",
                                       R"({"sol_target": 0.0})",    R"({"sol_target": 1.01})",
                                       R"({"max_clients": 0})",     R"({"queue_limit": 0})",
                                       R"({"socket": ""})",         R"({"compile_deadline_s": 0})",
                                       R"({"cache": ""})",          R"({"templates": []})",
                                       R"({"log_level": "loud"})",  R"({"strategy": "luck"})",
                                       R"({"budget_variants": 0})", R"({"budget_seconds": -1})",
                                       R"({"patience": 0})",        R"({"offline": "sm_90a", "replay": "x.json"})"};
  for (const std::string& document : cases) {
    CAPTURE(document);
    Config config = with_paths();
    REQUIRE(apply_file(Json::parse(document), "file", config));
    CHECK_FALSE(refused(check(config)).expected.empty());
  }
  CHECK(check(with_paths()));
}
