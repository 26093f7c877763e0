#include "answers.h"

#include <doctest/doctest.h>

#include "wire/frame.h"

using namespace tunerd;
using namespace tunerd::daemon;

namespace {

Answers::Ready ready_for(const std::string& problem) {
  Answers::Ready ready;
  ready.problem = problem;
  return ready;
}

}  // namespace

TEST_CASE("a question is the bytes around its id, wherever the id stands in them") {
  Answers answers;
  answers.put({"ab", "cd"}, ready_for("p"));
  REQUIRE(answers.find({"ab", "cd"}) != nullptr);
  CHECK(answers.find({"ab", "cd"})->problem == "p");
  CHECK(answers.find({"a", "bcd"}) != nullptr);
  CHECK(answers.find({"ab", "c"}) == nullptr);
  CHECK(answers.find({"", ""}) == nullptr);
}

TEST_CASE("what is remembered of a problem goes when its winner changes, and nothing else goes") {
  Answers answers;
  answers.put({"a", ""}, ready_for("p"));
  answers.put({"b", ""}, ready_for("p"));
  answers.put({"c", ""}, ready_for("q"));
  answers.forget("p");
  CHECK(answers.find({"a", ""}) == nullptr);
  CHECK(answers.find({"b", ""}) == nullptr);
  CHECK(answers.find({"c", ""}) != nullptr);
  answers.clear();
  CHECK(answers.size() == 0);
}

TEST_CASE("the oldest answers make room, and a question put again is one question") {
  Answers answers;
  for (int round = 0; round < 3; ++round) answers.put({"again", ""}, ready_for("p"));
  for (int i = 0; i < 5000; ++i) answers.put({std::to_string(i), ""}, ready_for("p"));
  CHECK(answers.size() == 4096);
  CHECK(answers.find({"again", ""}) == nullptr);
  CHECK(answers.find({"4999", ""}) != nullptr);
}

TEST_CASE("a ready reply carries the id of whoever asks") {
  Answers::Ready ready;
  ready.frame = wire::encode_frame({{"id", ~std::uint64_t{0}}, {"ok", true}, {"zz", "after"}});
  const auto at = wire::find_id(std::string_view(ready.frame).substr(wire::kHeaderBytes));
  REQUIRE(at);
  REQUIRE(at->size == 9);
  ready.id_at = wire::kHeaderBytes + at->at + 1;
  for (const std::uint64_t id : {std::uint64_t{1}, std::uint64_t{0x0102030405060708}, ~std::uint64_t{0}}) {
    const auto body = wire::parse_body(std::string_view(with_id(ready, id)).substr(wire::kHeaderBytes));
    REQUIRE(body);
    CHECK((*body)["id"] == id);
    CHECK((*body)["zz"] == "after");
  }
}
