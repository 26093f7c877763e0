#include "ctl/shapes.h"

#include <charconv>
#include <iostream>
#include <sstream>

namespace tunerd::ctl {
namespace {

constexpr std::size_t kMaxShapeBytes = std::size_t{64} << 20;

// Integers travel as integers; anything else as the text it is, for the op's own check to judge.
Json value_of(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && !text.empty()) return number;
  return text;
}

Result<std::vector<Json>> checked(Json list, const std::string& where) {
  if (list.size() > kMaxShapes) {
    return bad_input(where, std::to_string(list.size()) + " problems", "at most " + std::to_string(kMaxShapes));
  }
  std::vector<Json> out;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string path = where + ": problems[" + std::to_string(i) + "]";
    if (!list[i].is_object())
      return bad_input(path, list[i].type_name(), "an object such as {\"op\":\"gemm\",\"m\":16,…}");
    const auto op = list[i].find("op");
    if (op == list[i].end() || !op->is_string()) {
      return bad_input(path + ".op", op == list[i].end() ? "nothing" : op->dump(), "the name of an op");
    }
    out.push_back(std::move(list[i]));
  }
  if (out.empty()) return bad_input(where, "no problems", "at least one");
  return out;
}

Result<std::vector<Json>> parse_lines(const std::string& text, const std::string& where) {
  Json list = Json::array();
  std::istringstream lines(text);
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    Json json = Json::parse(line, nullptr, false);
    if (json.is_discarded()) {
      return bad_input(where + ":" + std::to_string(number), line.substr(0, 60), "JSON, or one JSON object a line");
    }
    list.push_back(std::move(json));
  }
  return checked(std::move(list), where);
}

}  // namespace

Result<Json> fields_from_words(const std::vector<std::string>& words) {
  Json fields = Json::object();
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) return bad_input("argument", word, "name=value, such as m=16");
    const std::string name = word.substr(0, equals);
    if (fields.contains(name)) return bad_input(name, word.substr(equals + 1), "given once");
    fields[name] = value_of(word.substr(equals + 1));
  }
  return fields;
}

Result<Json> problem_from_words(const std::string& op, const std::vector<std::string>& words) {
  TRY_ASSIGN(Json problem, fields_from_words(words));
  if (problem.contains("op")) return bad_input("op", problem["op"].dump(), "given once, as the first word");
  problem["op"] = op;
  return problem;
}

std::string describe(const Json& problem) {
  std::string text = problem.value("op", "?");
  for (const auto& [name, value] : problem.items()) {
    if (name == "op" || name == "from") continue;
    text += " " + name + "=" + (value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text;
}

Result<std::vector<Json>> parse_shapes(const std::string& text, const std::string& where) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return parse_lines(text, where);
  if (json.is_array()) return checked(std::move(json), where);
  if (json.is_object() && json.contains("problems")) {
    if (!json["problems"].is_array()) return bad_input(where + ": problems", json["problems"].type_name(), "a list");
    return checked(std::move(json["problems"]), where);
  }
  return checked(Json::array({std::move(json)}), where);
}

Result<std::vector<Json>> read_shapes(const std::string& file) {
  if (file != "-") {
    TRY_ASSIGN(const std::string text, read_text_file(file, std::int64_t(kMaxShapeBytes)));
    return parse_shapes(text, file);
  }
  std::string text;
  char chunk[1 << 16];
  while (std::cin.read(chunk, sizeof chunk) || std::cin.gcount() > 0) {
    text.append(chunk, std::size_t(std::cin.gcount()));
    if (text.size() > kMaxShapeBytes)
      return bad_input("standard input", "more than 64 MiB", "at most 64 MiB of shapes");
  }
  return parse_shapes(text, "standard input");
}

}  // namespace tunerd::ctl
