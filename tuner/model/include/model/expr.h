// The integer expression language of op files, manifests, recipes and plans.
//
//   literals 123, names [a-z_][a-z0-9_]*, + - * / % (division truncates), == != < <= > >= && || !,
//   unary -, parentheses, ceildiv(a,b) min(a,b) max(a,b) select(cond,a,b). Booleans are 0 and 1.
//
// All arithmetic is 64-bit signed and checked: overflow and division by zero are errors, never wrapped values.
// && || and select evaluate both sides (the language has no effects); an error on either side is an error,
// except that select(c,a,b) ignores an error of the branch not taken.
// Parsed once into RPN; the RPN travels in answers as a JSON array of integers, names and operator words, e.g.
// ["m",128,"ceildiv"]. Operator words: + - * / % == != < <= > >= && || ! neg ceildiv min max select.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/json_reader.h"
#include "model/result.h"

namespace tunerd {

// A small flat map from name to value, in insertion order; set() overwrites.
class Symbols {
 public:
  Symbols() = default;
  Symbols(std::initializer_list<std::pair<std::string, std::int64_t>> entries) : entries_(entries) {}
  void set(std::string_view name, std::int64_t value);
  const std::int64_t* find(std::string_view name) const;
  const std::vector<std::pair<std::string, std::int64_t>>& entries() const { return entries_; }
  void merge(const Symbols& other);  // the other's values win
  bool operator==(const Symbols&) const = default;

 private:
  std::vector<std::pair<std::string, std::int64_t>> entries_;
};

class Expr {
 public:
  Expr() : Expr(0) {}
  explicit Expr(std::int64_t constant);
  // `text` up to 4096 characters, 256 tokens, 64 pending operands, 256 levels of nesting, names up to 64 characters;
  // errors give the position. A minus sign before a digit belongs to the literal.
  static Result<Expr> parse(std::string_view text);
  // From a manifest: an integer, or a string to parse. `path` names the field in errors.
  static Result<Expr> from_manifest(const Json& value, const std::string& path);
  // From RPN in an answer: checked for arity, so that evaluation never underflows. A bare integer is accepted.
  static Result<Expr> from_rpn(const Json& array);
  Json rpn() const;

  // Allocates nothing unless it fails. Errors: an unknown name (named), overflow, division by zero.
  Result<std::int64_t> eval(const Symbols& symbols) const;
  // Replaces known names by their values and folds constant parts. Never fails: what cannot fold stays.
  Expr bind(const Symbols& symbols) const;
  std::vector<std::string> names() const;  // each once, sorted
  bool is_constant() const;
  std::string text() const;  // infix; parses back to an equal expression
  bool operator==(const Expr&) const = default;

 private:
  enum class Op : std::uint8_t {
    constant,
    name,
    add,
    sub,
    mul,
    div,
    mod,
    eq,
    ne,
    lt,
    le,
    gt,
    ge,
    and_,
    or_,
    not_,
    neg,
    ceildiv,
    min,
    max,
    select
  };
  struct Token {
    Op op = Op::constant;
    std::int64_t value = 0;
    std::string name;
    bool operator==(const Token&) const = default;
  };
  friend class ExprParser;
  friend struct ExprOps;
  std::vector<Token> tokens_;
};

// A condition with the sentence that says why a value breaks it.
struct Rule {
  Expr expr;           // non-zero means it holds
  std::string reason;  // e.g. "k must be a multiple of 8 for 16-byte loads"
  bool operator==(const Rule&) const = default;
};
Result<std::vector<Rule>> rules_from_json(const Json* array,
                                          const std::string& path);  // [{ "if": expr, "reason": text }]; nullptr = none
Json rules_to_json(const std::vector<Rule>& rules);                  // [{ "if": rpn, "reason": text }]
Result<std::vector<Rule>> rules_from_rpn(const Json& array);

}  // namespace tunerd
