#include <doctest/doctest.h>

#include "wire/frame.h"

using namespace tunerd;
using namespace tunerd::wire;

namespace {

std::string body_of(const Json& json) { return encode_frame(json).substr(kHeaderBytes); }

}  // namespace

TEST_CASE("the id of a body is found among values of every kind, and cutting it out leaves the question") {
  const Json question = {{"a", {{"id", 7}, {"deep", {1, -2, 3.5, "x", nullptr, true}}}},
                         {"type", "get"},
                         {"zz", Json::array({{{"id", 8}}})}};
  std::string rest;
  for (const std::uint64_t id : {1ull, 23ull, 24ull, 255ull, 65'536ull, 1ull << 40}) {
    Json asked = question;
    asked["id"] = id;
    const std::string body = body_of(asked);
    const auto found = find_id(body);
    REQUIRE(found);
    CHECK(found->id == id);
    const std::string cut = body.substr(0, found->at) + body.substr(found->at + found->size);
    CHECK((rest.empty() || rest == cut));
    rest = cut;
  }
}

TEST_CASE("a body without exactly one unsigned id gives none") {
  CHECK_FALSE(find_id(""));
  CHECK_FALSE(find_id(body_of({{"type", "get"}})));
  CHECK_FALSE(find_id(body_of({{"id", -1}})));
  CHECK_FALSE(find_id(body_of({{"id", "1"}})));
  CHECK_FALSE(find_id(body_of(Json::array({1}))));
  CHECK_FALSE(find_id(std::string("\xA2\x62id\x01\x62id\x02", 9)));                        // twice
  CHECK_FALSE(find_id(std::string("\xBF\x62id\x01\xFF", 6)));                              // indefinite
  CHECK_FALSE(find_id(body_of({{"id", 1}}) + std::string(1, '\0')));                       // more behind it
  CHECK_FALSE(find_id(std::string("\xA1\x62id\x1B\x00\x00", 7)));                          // cut short
  CHECK_FALSE(find_id(std::string("\xA1\x61x\x9B\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 12)));  // a length past the end
}

TEST_CASE("no cut or changed byte of a body makes the search read past it") {
  const std::string body = body_of({{"id", 5}, {"list", {1, 2, {{"k", "v"}}}}, {"type", "get"}});
  for (std::size_t i = 0; i < body.size(); ++i) {
    find_id(std::string_view(body).substr(0, i));
    for (int value = 0; value < 256; ++value) {
      std::string changed = body;
      changed[i] = static_cast<char>(value);
      if (const auto found = find_id(changed)) CHECK(found->at + found->size <= changed.size());
    }
  }
}
