// Expected failures are values. Every error names the field at fault, the value it had and what was expected.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

namespace tunerd {

enum class Code {
  invalid_argument,  // the caller's input is wrong; `field`, `value`, `expected` say how
  not_found,         // nothing by that name or key
  missing,           // a needed library, file or device is absent
  unsupported,       // right input, but this build, device or version cannot do it
  corrupt,           // stored or received bytes fail their check
  io,                // the operating system refused
  deadline,          // a bounded step ran out of time
  busy,              // a bounded queue or quota is full
  denied,            // the peer may not do this
  compile_failed,    // NVRTC rejected the source
  device,            // the GPU or its driver failed
  internal           // a broken invariant, a bug
};

std::string_view to_string(Code code);
Code code_from_string(std::string_view text);  // unknown text gives Code::internal

struct Error {
  Code code = Code::internal;
  std::string message;     // one full sentence
  std::string field;       // e.g. "dtype"; empty when no field is at fault
  std::string value;       // the offending value as text
  std::string expected;    // e.g. "one of bf16, fp16"
  std::string suggestion;  // a near match, or empty

  // message, then "(field: value; expected …; did you mean …?)", parts present only when set.
  std::string text() const;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;
using Unexpected = tl::unexpected<Error>;

inline Unexpected fail(Code code, std::string message) {
  return Unexpected(Error{code, std::move(message), {}, {}, {}, {}});
}

// `text` as an error may show it, whatever it came from: at most `limit_bytes`, valid UTF-8, no control characters.
std::string legible(std::string_view text, std::size_t limit_bytes = 512);

// An input error; builds the sentence from its parts, `field` and `value` made legible. `suggestion` may be empty.
Unexpected bad_input(const std::string& field, const std::string& value, std::string expected,
                     std::string suggestion = {});

// The candidate nearest to `word` by edit distance (case is no difference), or "" when none is near (distance
// > 2 + length/4, or as long as the candidate itself).
std::string nearest_match(std::string_view word, const std::vector<std::string>& candidates);

// bad_input for a name that is none of `candidates`: expected lists them, suggestion is the nearest.
Unexpected unknown_name(const std::string& field, const std::string& value, const std::vector<std::string>& candidates);

}  // namespace tunerd

// Unwraps a Result inside a function that returns a Result: TRY_ASSIGN(auto x, f());
#define TUNERD_CONCAT_(a, b) a##b
#define TUNERD_CONCAT(a, b) TUNERD_CONCAT_(a, b)
#define TRY_ASSIGN_(tmp, lhs, expr)                              \
  auto tmp = (expr);                                             \
  if (!tmp) return ::tunerd::Unexpected(std::move(tmp).error()); \
  lhs = std::move(tmp).value()
#define TRY_ASSIGN(lhs, expr) TRY_ASSIGN_(TUNERD_CONCAT(try_, __LINE__), lhs, expr)
#define TRY(expr)                                                                                          \
  do {                                                                                                     \
    if (auto try_status = (expr); !try_status) return ::tunerd::Unexpected(std::move(try_status).error()); \
  } while (false)
