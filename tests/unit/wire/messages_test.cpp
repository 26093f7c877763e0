#include "wire/messages.h"

#include <doctest/doctest.h>

#include <set>

#include "sample_answer.h"
#include "wire/symbols.h"

using namespace tunerd;
using namespace tunerd::wire;

TEST_CASE("a get request survives the trip, and its defaults are filled in") {
  GetRequest request;
  request.op = "gemm";
  request.fields = {{"m", 16}, {"dtype", "bf16"}};
  request.wait = Wait::tuned;
  request.deadline_ms = 1234;
  request.want_cubin = false;
  request.tune = false;
  Json json = to_json(request);
  json["id"] = 7;
  json["type"] = "get";
  const auto back = get_request_from_json(json);
  REQUIRE(back);
  CHECK(to_json(*back) == to_json(request));

  const auto least = get_request_from_json(Json{{"op", "gemm"}, {"fields", Json::object()}});
  REQUIRE(least);
  CHECK(least->wait == Wait::now);
  CHECK(least->deadline_ms == 60'000);
  CHECK(least->want_cubin);
  CHECK(least->tune);
}

TEST_CASE("an unknown field of a request is an error that suggests the nearest") {
  const auto request = get_request_from_json(Json{{"op", "gemm"}, {"fields", Json::object()}, {"dedline_ms", 5}});
  REQUIRE_FALSE(request);
  CHECK(request.error().text().find("dedline_ms") != std::string::npos);
  CHECK(request.error().suggestion == "deadline_ms");
}

TEST_CASE("an unknown wait is an error that lists the three") {
  const auto request = get_request_from_json(Json{{"op", "gemm"}, {"fields", Json::object()}, {"wait", "tunned"}});
  REQUIRE_FALSE(request);
  CHECK(request.error().field == "wait");
  CHECK(request.error().suggestion == "tuned");
}

TEST_CASE("a deadline outside its bounds, an empty op and fields of the wrong type are errors that name the field") {
  const auto with = [](const char* key, Json value) {
    Json body{{"op", "gemm"}, {"fields", Json::object()}};
    body[key] = std::move(value);
    const auto request = get_request_from_json(body);
    return request ? std::string() : request.error().field;
  };
  CHECK(with("deadline_ms", 0) == "get.deadline_ms");
  CHECK(with("deadline_ms", 3'600'001) == "get.deadline_ms");
  CHECK(with("op", "") == "get.op");
  CHECK(with("op", 5).find("op") != std::string::npos);
  CHECK(with("fields", Json::array()).find("fields") != std::string::npos);
  CHECK_FALSE(get_request_from_json(Json::array()));
}

TEST_CASE("an answer shows exactly the keys that scripts rely on") {
  const Json json = to_json(sample_answer());
  std::set<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.insert(key);
  CHECK(keys == std::set<std::string>{"op",          "problem",      "variant",      "quality",    "source",
                                      "t_sol_us",    "time_us",      "sol_fraction", "bound",      "flops",
                                      "bytes",       "device_class", "arch",         "generation", "kernel_digest",
                                      "cubin_bytes", "problem_json", "launch",       "arguments",  "recipe",
                                      "note"});
  CHECK(json["quality"] == "near");
  CHECK(json["source"] == "measured");
  CHECK(json["launch"]["grid"] == Json{2, 16, 1});
  CHECK(json["launch"]["workspace_bytes"] == 2 * 64);
  CHECK(json["arguments"].size() == sample_recipe().arguments.size());
  CHECK(json["arguments"][0]["name"] == "x");
  CHECK(json["arguments"][0]["shape"] == Json{64, 1024});
}

TEST_CASE("what was not measured is null, not zero") {
  GetAnswer answer = sample_answer();
  answer.measured = false;
  answer.time_us = answer.sol_fraction = 0;
  const Json json = to_json(answer);
  CHECK(json["source"] == "predicted");
  CHECK(json["time_us"].is_null());
  CHECK(json["sol_fraction"].is_null());
  const auto back = get_answer_from_json(json);
  REQUIRE(back);
  CHECK(back->time_us == 0);
}

TEST_CASE("an answer survives the trip") {
  const GetAnswer answer = sample_answer();
  const auto back = get_answer_from_json(to_json(answer));
  REQUIRE(back);
  CHECK(to_json(*back) == to_json(answer));
  CHECK(back->recipe == answer.recipe);
  CHECK(back->quality == Quality::near);
  CHECK(back->generation == answer.generation);
}

TEST_CASE("a grid that does not evaluate for the problem is shown as the expression") {
  GetAnswer answer = sample_answer();
  answer.problem_json["dims"]["k"] = 1023;                     // breaks the check
  CHECK(to_json(answer)["launch"]["grid"] == Json{2, 16, 1});  // each part still evaluates
  answer.problem_json["dims"].erase("m");
  CHECK(to_json(answer)["launch"]["grid"][0].is_string());
  CHECK(to_json(answer)["launch"]["workspace_bytes"].is_null());
}

TEST_CASE("a broken answer is an error that names the field") {
  const auto broken = [](const char* key, Json value) {
    Json json = to_json(sample_answer());
    json[key] = std::move(value);
    const auto answer = get_answer_from_json(json);
    return answer ? std::string() : answer.error().field;
  };
  CHECK(broken("quality", "best") == "quality");
  CHECK(broken("source", "guessed") == "answer.source");
  CHECK(broken("cubin_bytes", -1) == "answer.cubin_bytes");
  CHECK(broken("generation", -1) == "answer.generation");
  CHECK(broken("problem_json", 5).find("problem_json") != std::string::npos);
  CHECK_FALSE(broken("recipe", Json{{"version", 1}}).empty());
  CHECK(broken("something_new", 5).empty());  // a newer daemon may say more
}

TEST_CASE("a tune report survives the trip, also one that failed and has nothing to launch") {
  TuneReport report;
  report.problem = "gemm{…}";
  report.state = "tuned";
  report.answer = sample_answer();
  report.considered = 100;
  report.wrong = 2;
  report.wall_s = 1.5;
  report.stop_reason = "converged";
  auto back = tune_report_from_json(to_json(report));
  REQUIRE(back);
  CHECK(to_json(*back) == to_json(report));

  TuneReport failed;
  failed.problem = "gemm{…}";
  failed.state = "failed";
  back = tune_report_from_json(to_json(failed));
  REQUIRE(back);
  CHECK(back->state == "failed");
  CHECK(back->answer.recipe.entry.empty());

  Json unknown = to_json(report);
  unknown["state"] = "tunned";
  back = tune_report_from_json(unknown);
  REQUIRE_FALSE(back);
  CHECK(back.error().suggestion == "tuned");
}

TEST_CASE("an error travels with every part, and a reply gives it back") {
  const Error error{Code::not_found, "nothing stored", "dtype", "fp8", "bf16", "fp16"};
  const auto reply = unwrap_reply(error_reply(9, error));
  REQUIRE_FALSE(reply);
  CHECK(reply.error().code == Code::not_found);
  CHECK(reply.error().text() == error.text());
  CHECK(error_reply(9, error)["id"] == 9);

  const auto ok = unwrap_reply(ok_reply(9, Json{{"pid", 5}}));
  REQUIRE(ok);
  CHECK(*ok == Json{{"pid", 5}});
  CHECK(ok_reply(9, Json())["id"] == 9);
}

TEST_CASE("a reply that is none is an error, whatever it is") {
  for (const Json& body : {Json(), Json::array(), Json::object(), Json{{"ok", "yes"}}, Json{{"ok", false}},
                           Json{{"ok", false}, {"error", "text"}}, Json{{"ok", false}, {"error", {{"code", 5}}}}}) {
    const auto reply = unwrap_reply(body);
    REQUIRE_FALSE(reply);
    CHECK_FALSE(reply.error().message.empty());
  }
}

TEST_CASE("a recipe's symbols take padded strides, and dense ones elsewhere") {
  const auto symbols =
      recipe_symbols(sample_recipe(), {{"m", 64}, {"n", 1024}, {"k", 1024}}, {{"ld_x", 2048}}, DType::bf16);
  REQUIRE(symbols);
  CHECK(*symbols->find("ld_x") == 2048);
  CHECK(*symbols->find("ld_w") == 1024);
  CHECK(*symbols->find("has_bias") == 0);
  CHECK(*symbols->find("bytes_x") == 64 * 1024 * 2);
}

TEST_CASE("a stride below its row, or of a tensor that has none, is an error that names it") {
  const std::map<std::string, std::int64_t> dims{{"m", 64}, {"n", 1024}, {"k", 1024}};
  auto symbols = recipe_symbols(sample_recipe(), dims, {{"ld_x", 1000}}, DType::bf16);
  REQUIRE_FALSE(symbols);
  CHECK(symbols.error().field == "ld_x");
  symbols = recipe_symbols(sample_recipe(), dims, {{"ld_xx", 4096}}, DType::bf16);
  REQUIRE_FALSE(symbols);
  CHECK(symbols.error().suggestion == "ld_x");
}

TEST_CASE("sizes past 2^32 bytes are kept whole, past 2^63 refused") {
  const auto large = recipe_symbols(sample_recipe(), {{"m", 1 << 20}, {"n", 1 << 20}, {"k", 1 << 20}}, {}, DType::bf16);
  REQUIRE(large);
  CHECK(*large->find("bytes_x") == std::int64_t{1} << 41);
  const std::int64_t huge = std::int64_t{1} << 31;
  CHECK_FALSE(recipe_symbols(sample_recipe(), {{"m", huge}, {"n", huge}, {"k", huge}}, {}, DType::bf16));
}
