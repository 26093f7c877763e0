// Operator words and arities of the expression language, shared by its parser, its evaluator and its RPN form.
#pragma once

#include <array>
#include <string_view>

#include "model/expr.h"

namespace tunerd {

inline constexpr std::size_t kMaxTokens = 256;
inline constexpr std::size_t kMaxStack = 64;
inline constexpr std::size_t kMaxTextBytes = 4096;
inline constexpr std::size_t kMaxNameBytes = 64;
// Parentheses, calls and prefix operators within one another: as many as 256 tokens can ask for.
inline constexpr int kMaxNesting = 256;

struct ExprOps {
  using Op = Expr::Op;
  using Token = Expr::Token;
  struct Word {
    Op op;
    std::string_view text;
    int arity;
    int precedence;  // of binary operators; 0 for functions and prefix operators
  };
  static constexpr std::array<Word, 19> kWords{{
      {Op::or_, "||", 2, 1},  {Op::and_, "&&", 2, 2}, {Op::eq, "==", 2, 3},         {Op::ne, "!=", 2, 3},
      {Op::lt, "<", 2, 4},    {Op::le, "<=", 2, 4},   {Op::gt, ">", 2, 4},          {Op::ge, ">=", 2, 4},
      {Op::add, "+", 2, 5},   {Op::sub, "-", 2, 5},   {Op::mul, "*", 2, 6},         {Op::div, "/", 2, 6},
      {Op::mod, "%", 2, 6},   {Op::not_, "!", 1, 0},  {Op::neg, "neg", 1, 0},       {Op::ceildiv, "ceildiv", 2, 0},
      {Op::min, "min", 2, 0}, {Op::max, "max", 2, 0}, {Op::select, "select", 3, 0},
  }};
  static const Word* find(Op op) {
    for (const auto& word : kWords)
      if (word.op == op) return &word;
    return nullptr;
  }
  static const Word* find(std::string_view text) {
    for (const auto& word : kWords)
      if (word.text == text) return &word;
    return nullptr;
  }
  // Values an operator takes; 0 for constants and names. Called for every token of every launch.
  static constexpr int arity(Op op) {
    switch (op) {
      case Op::constant:
      case Op::name:
        return 0;
      case Op::not_:
      case Op::neg:
        return 1;
      case Op::select:
        return 3;
      default:
        return 2;
    }
  }
  static bool is_name(std::string_view text);
  // Token count, arity at every step, and stack depth; ok when exactly one value remains.
  static Status check(const std::vector<Token>& tokens);
  static Expr make(std::vector<Token> tokens);
  static const std::vector<Token>& tokens(const Expr& expr) { return expr.tokens_; }
};

}  // namespace tunerd
