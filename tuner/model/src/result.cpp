#include "model/result.h"

#include <algorithm>
#include <array>

namespace tunerd {
namespace {

constexpr std::array<std::pair<Code, std::string_view>, 12> kCodes{{
    {Code::invalid_argument, "invalid_argument"},
    {Code::not_found, "not_found"},
    {Code::missing, "missing"},
    {Code::unsupported, "unsupported"},
    {Code::corrupt, "corrupt"},
    {Code::io, "io"},
    {Code::deadline, "deadline"},
    {Code::busy, "busy"},
    {Code::denied, "denied"},
    {Code::compile_failed, "compile_failed"},
    {Code::device, "device"},
    {Code::internal, "internal"},
}};

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view to_string(Code code) {
  for (const auto& [value, text] : kCodes)
    if (value == code) return text;
  return "internal";
}

Code code_from_string(std::string_view text) {
  for (const auto& [value, name] : kCodes)
    if (name == text) return value;
  return Code::internal;
}

std::string Error::text() const {
  std::vector<std::string> parts;
  if (!field.empty()) parts.push_back(value.empty() ? field : field + ": " + value);
  if (!expected.empty()) parts.push_back("expected " + expected);
  if (!suggestion.empty()) parts.push_back("did you mean " + suggestion + "?");
  if (parts.empty()) return message;
  std::string out = message + " (";
  for (std::size_t i = 0; i < parts.size(); ++i) out += (i ? "; " : "") + parts[i];
  return out + ")";
}

Unexpected bad_input(std::string field, std::string value, std::string expected, std::string suggestion) {
  Error error;
  error.code = Code::invalid_argument;
  error.message = "Bad value for " + field;
  error.field = std::move(field);
  error.value = std::move(value);
  error.expected = std::move(expected);
  error.suggestion = std::move(suggestion);
  return Unexpected(std::move(error));
}

std::string nearest_match(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongest = 128;  // the distance is quadratic, and longer words are nobody's typo
  if (word.size() > kLongest) return {};
  std::string best;
  std::size_t best_distance = 2 + word.size() / 4 + 1;
  for (const auto& candidate : candidates) {
    if (candidate.size() > kLongest) continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance && distance < candidate.size()) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

Unexpected unknown_name(std::string field, std::string value, const std::vector<std::string>& candidates) {
  std::string expected = candidates.empty() ? "nothing (none is known)" : "one of ";
  for (std::size_t i = 0; i < candidates.size(); ++i) expected += (i ? ", " : "") + candidates[i];
  auto suggestion = nearest_match(value, candidates);
  return bad_input(std::move(field), std::move(value), std::move(expected), std::move(suggestion));
}

}  // namespace tunerd
