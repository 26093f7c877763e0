#include "model/json_reader.h"

#include <cmath>

#include "fixture.h"

using namespace tunerd;
using namespace tunerd::testing;

TEST_CASE("a field of the right type is read; an absent optional one gives its fallback") {
  const Json json = Json::parse(R"({"s":"a","i":-3,"d":1.5,"b":true,"l":["x","y"],"o":{},"a":[1]})");
  JsonReader reader(json, "file");
  CHECK(must(reader.string("s")) == "a");
  CHECK(must(reader.integer("i")) == -3);
  CHECK(must(reader.number("d")) == 1.5);
  CHECK(must(reader.number("i")) == -3.0);
  CHECK(must(reader.boolean_or("b", false)));
  CHECK(must(reader.strings_or("l", {})) == std::vector<std::string>{"x", "y"});
  CHECK(must(reader.object("o"))->empty());
  CHECK(must(reader.array("a"))->size() == 1);
  CHECK(must(reader.string_or("absent", "f")) == "f");
  CHECK(must(reader.integer_or("absent", 7)) == 7);
  CHECK(must(reader.number_or("absent", 0.5)) == 0.5);
  CHECK_FALSE(must(reader.boolean_or("absent", false)));
  CHECK(must(reader.strings_or("absent", {"d"})) == std::vector<std::string>{"d"});
  CHECK(reader.any("absent") == nullptr);
  CHECK(reader.has("s"));
  CHECK(reader.finish().has_value());
}

TEST_CASE("a field of the wrong type is an error that names its path, value and type") {
  const Json json = Json::parse(R"({"s":5,"i":"x","d":[],"b":1,"l":["x",2],"o":[],"a":{}})");
  JsonReader reader(json, "f.json");
  const auto check = [](const Error& error, const char* field, const char* value, const char* expected) {
    CHECK(error.code == Code::invalid_argument);
    CHECK(error.field == field);
    CHECK(error.value == value);
    CHECK(error.expected == expected);
  };
  check(error_of(reader.string("s")), "f.json.s", "5", "a string");
  check(error_of(reader.string_or("s", "")), "f.json.s", "5", "a string");
  check(error_of(reader.integer("i")), "f.json.i", "\"x\"", "an integer");
  check(error_of(reader.number("d")), "f.json.d", "[]", "a number");
  check(error_of(reader.boolean_or("b", true)), "f.json.b", "1", "true or false");
  check(error_of(reader.strings_or("l", {})), "f.json.l[1]", "2", "a string");
  check(error_of(reader.object("o")), "f.json.o", "[]", "an object");
  check(error_of(reader.array("a")), "f.json.a", "{}", "a list");
}

TEST_CASE("an integer past 2^63-1 and a fraction are no integers") {
  const Json json = Json::parse(R"({"max":9223372036854775807,"past":9223372036854775808,"half":1.0})");
  JsonReader reader(json, "f");
  CHECK(must(reader.integer("max")) == INT64_MAX);
  CHECK(error_of(reader.integer("past")).value == "9223372036854775808");
  CHECK(error_of(reader.integer("half")).value == "1.0");
}

TEST_CASE("NaN and infinity, which CBOR can carry, are no numbers") {
  const Json json{{"nan", std::nan("")}, {"inf", INFINITY}};
  JsonReader reader(json, "f");
  CHECK(error_of(reader.number("nan")).expected == "a finite number");
  CHECK(error_of(reader.number_or("inf", 0)).expected == "a finite number");
}

TEST_CASE("an unknown key is an error that suggests the nearest known one") {
  const Json json = Json::parse(R"({"source":"a","entyr":"b"})");
  JsonReader reader(json, "t.json");
  must(reader.string("source"));
  reader.has("entry");
  const Error error = error_of(reader.finish());
  CHECK(error.message == "Unknown field t.json.entyr");
  CHECK(error.field == "t.json.entyr");
  CHECK(error.expected == "one of entry, source");
  CHECK(error.suggestion == "entry");
}

TEST_CASE("a missing key names what the object has instead, so a typo of it is seen") {
  const Json json = Json::parse(R"({"source":"a","entyr":"b","//":"note"})");
  JsonReader reader(json, "t.json");
  must(reader.string("source"));
  const Error error = error_of(reader.string("entry"));
  CHECK(error.message == "Missing t.json.entry, given are entyr");
  CHECK(error.field == "t.json.entry");
  CHECK(error.expected == "a string");
}

TEST_CASE("a comment under // is no field") {
  const Json json = Json::parse(R"({"//":{"any":["thing"]}})");
  CHECK(JsonReader(json, "f").finish().has_value());
}

TEST_CASE("what is not an object fails at every required field and at the end") {
  const Json json = Json::parse("[1,2]");
  JsonReader reader(json, "f");
  CHECK(error_of(reader.string("a")).expected == "an object");
  CHECK(error_of(reader.boolean_or("a", false)).expected == "an object");
  CHECK(error_of(reader.finish()).value == "[1,2]");
}

TEST_CASE("a key of garbage bytes gives an error that can be written as JSON again") {
  const Json json{{std::string("k\xff") + std::string(5000, 'y'), 1}};
  const Error error = error_of(JsonReader(json, "f").finish());
  CHECK_NOTHROW(Json(error.text()).dump());
  CHECK(error.text().size() < 3000);
}
