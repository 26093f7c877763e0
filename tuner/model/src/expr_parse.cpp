#include <cctype>
#include <charconv>

#include "expr_ops.h"
#include "json_text.h"

namespace tunerd {

using Op = ExprOps::Op;

// Precedence climbing over the text. Every cycle of the recursion passes unary(), which kMaxNesting bounds.
class ExprParser {
 public:
  explicit ExprParser(std::string_view text) : text_(text) {}

  Result<Expr> run() {
    if (text_.size() > kMaxTextBytes) return fail_at("an expression of at most 4096 characters");
    TRY(binary(1));
    skip_space();
    if (at_ != text_.size()) return fail_at("an operator or the end");
    if (auto ok = ExprOps::check(tokens_); !ok) return Unexpected(ok.error());
    return ExprOps::make(std::move(tokens_));
  }

 private:
  Unexpected fail_at(const std::string& expected, std::string suggestion = {}) const {
    auto error = bad_input("expression", legible(text_, 200), expected + " at position " + std::to_string(at_ + 1),
                           std::move(suggestion));
    error.value().message = "Cannot read the expression";
    return error;
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  bool take(std::string_view word) {
    skip_space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  // The binary operator that stands here with at least `least` precedence, longest spelling first.
  const ExprOps::Word* peek_binary(int least) {
    skip_space();
    const ExprOps::Word* best = nullptr;
    for (const auto& word : ExprOps::kWords)
      if (word.precedence > 0 && text_.substr(at_, word.text.size()) == word.text &&
          (!best || word.text.size() > best->text.size()))
        best = &word;
    return best && best->precedence >= least ? best : nullptr;
  }

  Status push(Op op, std::int64_t value = 0, std::string name = {}) {
    if (tokens_.size() >= kMaxTokens) return fail_at("at most 256 tokens");
    tokens_.push_back({op, value, std::move(name)});
    return {};
  }

  Status binary(int least) {
    TRY(unary());
    while (const auto* word = peek_binary(least)) {
      at_ += word->text.size();
      TRY(binary(word->precedence + 1));
      TRY(push(word->op));
    }
    return {};
  }

  Status unary() {
    if (++nesting_ > kMaxNesting) return fail_at("nesting of at most 256");
    skip_space();
    Status status;
    if (at_ + 1 < text_.size() && text_[at_] == '-' && is_digit(text_[at_ + 1])) {
      status = literal();  // with its sign, so that -2^63 can be written
    } else if (take("-")) {
      TRY(unary());
      status = push(Op::neg);
    } else if (at_ + 1 < text_.size() && text_[at_] == '!' && text_[at_ + 1] != '=') {
      ++at_;
      TRY(unary());
      status = push(Op::not_);
    } else {
      status = primary();
    }
    --nesting_;
    return status;
  }

  Status primary() {
    skip_space();
    if (at_ >= text_.size()) return fail_at("a value");
    if (take("(")) {
      TRY(binary(1));
      if (!take(")")) return fail_at("')'");
      return {};
    }
    const char first = text_[at_];
    if (is_digit(first)) return literal();
    if (is_lower(first) || first == '_') return name();
    return fail_at("a number, a name or '('");
  }

  Status literal() {
    std::int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) return fail_at("a number within 64 bits");
    at_ += static_cast<std::size_t>(end - begin);
    if (at_ < text_.size() &&
        (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' || text_[at_] == '.'))
      return fail_at("an integer");
    return push(Op::constant, value);
  }

  Status name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_lower(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '_')) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word.size() > kMaxNameBytes) {
      at_ = begin;
      return fail_at("a name of at most 64 characters");
    }
    skip_space();
    const bool call = at_ < text_.size() && text_[at_] == '(';
    const auto* function = ExprOps::find(word);
    if (function == nullptr || function->precedence != 0) {
      if (call) {
        at_ = begin;
        return fail_at("one of the functions ceildiv, min, max, select, not '" + std::string(word) + "',",
                       nearest_match(word, {"ceildiv", "min", "max", "select"}));
      }
      return push(Op::name, 0, std::string(word));
    }
    if (!call || word == "neg") {
      at_ = begin;
      return fail_at("a name that is not the operator word '" + std::string(word) + "',");
    }
    ++at_;
    for (int i = 0; i < function->arity; ++i) {
      if (i > 0 && !take(","))
        return fail_at("',' (" + std::string(word) + " takes " + std::to_string(function->arity) + " values)");
      TRY(binary(1));
    }
    if (!take(")"))
      return fail_at("')' (" + std::string(word) + " takes " + std::to_string(function->arity) + " values)");
    return push(function->op);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int nesting_ = 0;
  std::vector<ExprOps::Token> tokens_;
};

Result<Expr> Expr::parse(std::string_view text) { return ExprParser(text).run(); }

Result<Expr> Expr::from_manifest(const Json& value, const std::string& path) {
  if (is_int64(value)) return Expr(value.get<std::int64_t>());
  if (!value.is_string()) return bad_input(path, shown(value), "an integer or an expression in a string");
  auto parsed = parse(value.get<std::string>());
  if (!parsed) {
    Error error = parsed.error();
    error.field = path;
    error.message = "Cannot read the expression " + path;
    return Unexpected(std::move(error));
  }
  return parsed;
}

}  // namespace tunerd
