#include "wire/frame.h"

#include <doctest/doctest.h>

#include <random>

using namespace tunerd;
using namespace tunerd::wire;

namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out.push_back(static_cast<char>(value));
  return out;
}

std::string nested(std::size_t arrays) {  // {"a": [[…]]}
  std::string out = bytes({0xA1, 0x61, 'a'});
  for (std::size_t i = 0; i < arrays; ++i) out += bytes({0x81});
  return out + bytes({0x00});
}

}  // namespace

TEST_CASE("a frame is twelve bytes of header and a CBOR map, little-endian") {
  const std::string frame = encode_frame(Json{{"a", 1}}, kFlagFd);
  CHECK(frame == "TNRD" + bytes({1, 0, 1, 0, 4, 0, 0, 0, 0xA1, 0x61, 'a', 1}));
  const auto header = parse_header(std::string_view(frame).substr(0, kHeaderBytes), 100);
  REQUIRE(header);
  CHECK(header->version == kProtocolVersion);
  CHECK(header->flags == kFlagFd);
  CHECK(header->length == 4);
  const auto body = parse_body(std::string_view(frame).substr(kHeaderBytes));
  REQUIRE(body);
  CHECK(*body == Json{{"a", 1}});
}

TEST_CASE("a header of another version is read, so that the version can be named") {
  const auto header = parse_header("TNRD" + bytes({0x34, 0x12, 0, 0, 0, 0, 0, 0}), 100);
  REQUIRE(header);
  CHECK(header->version == 0x1234);
}

TEST_CASE("a wrong magic is an error that shows the bytes") {
  const auto header = parse_header("GET / HTTP/1", 100);
  REQUIRE_FALSE(header);
  CHECK(header.error().code == Code::corrupt);
  CHECK(header.error().field == "magic");
  CHECK(header.error().value == "GET ");
  CHECK(header.error().expected == "TNRD");
}

TEST_CASE("a length past the limit is an error that names both") {
  const auto header = parse_header("TNRD" + bytes({1, 0, 0, 0, 101, 0, 0, 0}), 100);
  REQUIRE_FALSE(header);
  CHECK(header.error().field == "length");
  CHECK(header.error().value == "101");
  CHECK(header.error().expected == "at most 100 bytes");
  CHECK(parse_header("TNRD" + bytes({1, 0, 0, 0, 100, 0, 0, 0}), 100));
}

TEST_CASE("a header cut short is an error that names the length") {
  const auto header = parse_header("TNRD", 100);
  REQUIRE_FALSE(header);
  CHECK(header.error().field == "length");
}

TEST_CASE("every JSON value a message may hold survives the trip") {
  const Json body{{"null", nullptr},
                  {"flags", {true, false}},
                  {"small", -1},
                  {"large", std::numeric_limits<std::uint64_t>::max()},
                  {"least", std::numeric_limits<std::int64_t>::min()},
                  {"real", 0.1},
                  {"text", "grüße ☃ 😀"},
                  {"empty", Json::object()},
                  {"list", Json::array()},
                  {"blob", Json::binary({0, 1, 255})},
                  {"long", std::string(70'000, 'x')}};
  const std::string frame = encode_frame(body);
  const auto back = parse_body(std::string_view(frame).substr(kHeaderBytes));
  REQUIRE(back);
  CHECK(*back == body);
}

TEST_CASE("nesting up to the limit is read, one deeper is an error that names the depth") {
  CHECK(parse_body(nested(kMaxDepth - 1)));
  const auto deeper = parse_body(nested(kMaxDepth));
  REQUIRE_FALSE(deeper);
  CHECK(deeper.error().field == "depth");
}

TEST_CASE("a million nested arrays neither recurse nor crash") {
  CHECK_FALSE(parse_body(nested(1'000'000)));
  CHECK_FALSE(parse_body(bytes({0xA1, 0x61, 'a'}) + std::string(1'000'000, '\x9F')));  // indefinite arrays
  CHECK_FALSE(parse_body(bytes({0xA1, 0x61, 'a'}) + std::string(1'000'000, '\xC1')));  // tags
  CHECK_FALSE(parse_body(bytes({0xA1, 0x61, 'a'}) + std::string(1'000'000, '\x7F')));  // string chunks
  CHECK_FALSE(parse_body(std::string(1'000'000, '\xBF')));                             // maps as keys
}

TEST_CASE("indefinite lengths are read") {
  // {_ "a": [_ 1, 2], "b": (_ "x", "y")}
  const auto body =
      parse_body(bytes({0xBF, 0x61, 'a', 0x9F, 1, 2, 0xFF, 0x61, 'b', 0x7F, 0x61, 'x', 0x61, 'y', 0xFF, 0xFF}));
  REQUIRE(body);
  CHECK(*body == Json{{"a", {1, 2}}, {"b", "xy"}});
}

TEST_CASE("a declared length that the body cannot hold is refused before it is believed") {
  for (const std::string& body :
       {bytes({0xA1, 0x61, 'a', 0x9B, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFE}),  // array of 2^64-2
        bytes({0xA1, 0x61, 'a', 0x9A, 0x7F, 0xFF, 0xFF, 0xFF}),                          // array of 2^31-1
        bytes({0xBB, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}),                   // map of 2^63-1
        bytes({0xA1, 0x61, 'a', 0x7B, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}),  // text of 2^64-1
        bytes({0xA1, 0x61, 'a', 0x5A, 0xFF, 0xFF, 0xFF, 0xFF})}) {                       // bytes of 2^32-1
    const auto parsed = parse_body(body);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().field == "length");
  }
}

TEST_CASE("a body that is not exactly one map is an error") {
  CHECK_FALSE(parse_body(""));
  CHECK_FALSE(parse_body(bytes({0x80})));                   // an array
  CHECK_FALSE(parse_body(bytes({0xA0, 0x00})));             // one byte more
  CHECK_FALSE(parse_body(bytes({0xA1, 0x01, 0x01})));       // a key that is no text
  CHECK_FALSE(parse_body(bytes({0xBF, 0x61, 'a', 0xFF})));  // a key without its value
  CHECK_FALSE(parse_body(bytes({0xA1, 0x61, 'a'})));
  CHECK(parse_body(bytes({0xA0})));
}

TEST_CASE("what no message uses is refused: tags, undefined, simple values, integers below 64 bits, broken text") {
  const std::string key = bytes({0xA1, 0x61, 'a'});
  CHECK_FALSE(parse_body(key + bytes({0xC0, 0x61, 'x'})));
  CHECK_FALSE(parse_body(key + bytes({0xF7})));
  CHECK_FALSE(parse_body(key + bytes({0xF8, 0xFF})));
  CHECK_FALSE(parse_body(key + bytes({0x1C})));
  CHECK_FALSE(parse_body(key + bytes({0xFF})));
  CHECK_FALSE(parse_body(key + bytes({0x3B, 0x80, 0, 0, 0, 0, 0, 0, 0})));
  CHECK_FALSE(parse_body(key + bytes({0x62, 0xC3, 0x28})));        // bad continuation
  CHECK_FALSE(parse_body(key + bytes({0x62, 0xC0, 0x80})));        // overlong
  CHECK_FALSE(parse_body(key + bytes({0x63, 0xED, 0xA0, 0x80})));  // surrogate
  CHECK_FALSE(parse_body(key + bytes({0x61, 0x80})));
}

TEST_CASE("every prefix of a frame's body is an error, and none crashes") {
  const std::string frame = encode_frame(Json{{"a", {1, "two", {{"b", 2.5}}}}, {"c", Json::binary({1, 2, 3})}});
  const std::string body = frame.substr(kHeaderBytes);
  for (std::size_t length = 0; length < body.size(); ++length) CHECK_FALSE(parse_body(body.substr(0, length)));
  CHECK(parse_body(body));
}

TEST_CASE("what is read can always be printed: random bodies never crash") {
  std::mt19937_64 random(7);
  const std::string frame = encode_frame(Json{{"id", 1}, {"list", {1, 2, "x"}}, {"deep", {{"a", {{"b", nullptr}}}}}});
  for (int i = 0; i < 20'000; ++i) {
    std::string body = frame.substr(kHeaderBytes);
    for (int changes = 1 + static_cast<int>(random() % 4); changes > 0; --changes)
      body[random() % body.size()] = static_cast<char>(random());
    if (const auto parsed = parse_body(body)) CHECK_FALSE(parsed->dump().empty());
  }
}
