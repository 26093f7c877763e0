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

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Bytes of the well-formed UTF-8 sequence at the front of `text`, 0 when there is none.
std::size_t sequence_bytes(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return 1;
  const std::size_t size = lead >= 0xC2 && lead <= 0xDF   ? 2
                           : lead >= 0xE0 && lead <= 0xEF ? 3
                           : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                          : 0;
  if (size == 0 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((at(i) & 0xC0) != 0x80) return 0;
  // Overlong forms, surrogates and values past U+10FFFF show in the second byte.
  if ((lead == 0xE0 && at(1) < 0xA0) || (lead == 0xED && at(1) > 0x9F) || (lead == 0xF0 && at(1) < 0x90) ||
      (lead == 0xF4 && at(1) > 0x8F))
    return 0;
  return size;
}

// Insertions, deletions, replacements, and swaps of neighbours: the typos that fingers make.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const auto same = [&](std::size_t i, std::size_t j) { return lower(a[i]) == lower(b[j]); };
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same(i - 1, j - 1) ? 0 : 1)});
      if (i > 1 && j > 1 && same(i - 1, j - 2) && same(i - 2, j - 1)) row[j] = std::min(row[j], before[j - 2] + 1);
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

std::string legible(std::string_view text, std::size_t limit_bytes) {
  std::string out;
  while (!text.empty()) {
    const std::size_t size = sequence_bytes(text);
    const bool shown = size > 1 || (size == 1 && text[0] >= 0x20 && text[0] != 0x7F);
    const std::string_view piece = shown ? text.substr(0, size) : "?";
    if (out.size() + piece.size() > limit_bytes) return out + "...";
    out += piece;
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return out;
}

Unexpected bad_input(const std::string& field, const std::string& value, std::string expected, std::string suggestion) {
  Error error;
  error.code = Code::invalid_argument;
  error.field = legible(field);
  error.value = legible(value);
  error.message = "Bad value for " + error.field;
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

Unexpected unknown_name(const std::string& field, const std::string& value,
                        const std::vector<std::string>& candidates) {
  std::string expected = candidates.empty() ? "nothing (none is known)" : "one of ";
  for (std::size_t i = 0; i < candidates.size(); ++i) expected += (i ? ", " : "") + candidates[i];
  auto suggestion = nearest_match(value, candidates);
  return bad_input(field, value, std::move(expected), std::move(suggestion));
}

}  // namespace tunerd
