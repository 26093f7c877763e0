#include "model/expr.h"

#include <algorithm>
#include <array>

#include "expr_ops.h"

namespace tunerd {

using Op = ExprOps::Op;
using Token = ExprOps::Token;

namespace {

enum class Fault : std::uint8_t { none, overflow, division, unknown };

// A value, or the first fault met while computing it: select may still drop the branch that holds it.
struct Slot {
  std::int64_t value = 0;
  Fault fault = Fault::none;
  const std::string* name = nullptr;
};

Slot faulty(Fault fault) { return {0, fault, nullptr}; }

Slot divide(std::int64_t a, std::int64_t b, Op op) {
  if (b == 0) return faulty(Fault::division);
  if (a == INT64_MIN && b == -1) return op == Op::mod ? Slot{0, Fault::none, nullptr} : faulty(Fault::overflow);
  const std::int64_t quotient = a / b, rest = a % b;
  if (op == Op::div) return {quotient, Fault::none, nullptr};
  if (op == Op::mod) return {rest, Fault::none, nullptr};
  return {quotient + ((rest != 0 && (rest < 0) == (b < 0)) ? 1 : 0), Fault::none, nullptr};
}

Slot apply_binary(Op op, const Slot& left, const Slot& right) {
  if (left.fault != Fault::none) return left;
  if (right.fault != Fault::none) return right;
  const std::int64_t a = left.value, b = right.value;
  std::int64_t out = 0;
  switch (op) {
    case Op::add:
      return __builtin_add_overflow(a, b, &out) ? faulty(Fault::overflow) : Slot{out, Fault::none, nullptr};
    case Op::sub:
      return __builtin_sub_overflow(a, b, &out) ? faulty(Fault::overflow) : Slot{out, Fault::none, nullptr};
    case Op::mul:
      return __builtin_mul_overflow(a, b, &out) ? faulty(Fault::overflow) : Slot{out, Fault::none, nullptr};
    case Op::div:
    case Op::mod:
    case Op::ceildiv:
      return divide(a, b, op);
    case Op::eq:
      out = a == b;
      break;
    case Op::ne:
      out = a != b;
      break;
    case Op::lt:
      out = a < b;
      break;
    case Op::le:
      out = a <= b;
      break;
    case Op::gt:
      out = a > b;
      break;
    case Op::ge:
      out = a >= b;
      break;
    case Op::and_:
      out = a && b;
      break;
    case Op::or_:
      out = a || b;
      break;
    case Op::min:
      out = std::min(a, b);
      break;
    case Op::max:
      out = std::max(a, b);
      break;
    default:
      break;
  }
  return {out, Fault::none, nullptr};
}

Slot apply_unary(Op op, const Slot& slot) {
  if (slot.fault != Fault::none) return slot;
  if (op == Op::not_) return {slot.value == 0, Fault::none, nullptr};
  return slot.value == INT64_MIN ? faulty(Fault::overflow) : Slot{-slot.value, Fault::none, nullptr};
}

Slot apply_select(const Slot& condition, const Slot& yes, const Slot& no) {
  if (condition.fault != Fault::none) return condition;
  return condition.value ? yes : no;
}

}  // namespace

void Symbols::set(std::string_view name, std::int64_t value) {
  for (auto& entry : entries_)
    if (entry.first == name) {
      entry.second = value;
      return;
    }
  entries_.emplace_back(name, value);
}

const std::int64_t* Symbols::find(std::string_view name) const {
  for (const auto& entry : entries_)
    if (entry.first == name) return &entry.second;
  return nullptr;
}

void Symbols::merge(const Symbols& other) {
  for (const auto& [name, value] : other.entries_) set(name, value);
}

bool ExprOps::is_name(std::string_view text) {
  if (text.empty() || text.size() > kMaxNameBytes || !((text[0] >= 'a' && text[0] <= 'z') || text[0] == '_'))
    return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

Status ExprOps::check(const std::vector<Token>& tokens) {
  const auto bad = [](const std::string& expected) { return bad_input("expression", "", expected); };
  if (tokens.empty() || tokens.size() > kMaxTokens) return bad("1 to 256 tokens");
  std::size_t depth = 0;
  for (const auto& token : tokens) {
    const auto takes = static_cast<std::size_t>(arity(token.op));
    if (depth < takes) return bad("an operand for every operator");
    depth = depth - takes + 1;
    if (depth > kMaxStack) return bad("at most 64 pending operands");
  }
  if (depth != 1) return bad("exactly one value");
  return {};
}

Expr ExprOps::make(std::vector<Token> tokens) {
  Expr expr;
  expr.tokens_ = std::move(tokens);
  return expr;
}

Expr::Expr(std::int64_t constant) : tokens_{Token{Op::constant, constant, {}}} {}

Result<std::int64_t> Expr::eval(const Symbols& symbols) const {
  std::array<Slot, kMaxStack> stack;
  std::size_t top = 0;
  for (const auto& token : tokens_) {
    switch (ExprOps::arity(token.op)) {
      case 0:
        if (token.op == Op::constant)
          stack[top++] = {token.value, Fault::none, nullptr};
        else if (const auto* value = symbols.find(token.name))
          stack[top++] = {*value, Fault::none, nullptr};
        else
          stack[top++] = {0, Fault::unknown, &token.name};
        break;
      case 1:
        stack[top - 1] = apply_unary(token.op, stack[top - 1]);
        break;
      case 2:
        stack[top - 2] = apply_binary(token.op, stack[top - 2], stack[top - 1]);
        --top;
        break;
      default:
        stack[top - 3] = apply_select(stack[top - 3], stack[top - 2], stack[top - 1]);
        top -= 2;
    }
  }
  const Slot& result = stack[0];
  if (result.fault == Fault::none) return result.value;
  if (result.fault == Fault::unknown) {
    std::vector<std::string> known;
    for (const auto& entry : symbols.entries()) known.push_back(entry.first);
    auto error = unknown_name(*result.name, *result.name, known);
    error.value().message = "Unknown name " + *result.name + " in " + text();
    return error;
  }
  auto error = bad_input("expression", text(),
                         result.fault == Fault::overflow ? "a value within 64 bits" : "a divisor other than zero");
  error.value().message = result.fault == Fault::overflow ? "Overflow" : "Division by zero";
  return error;
}

Expr Expr::bind(const Symbols& symbols) const {
  // A folded part is a run of tokens; an operator over constants collapses its operands' runs into one constant.
  std::vector<std::vector<Token>> stack;
  const auto constant = [](const std::vector<Token>& run) { return run.size() == 1 && run[0].op == Op::constant; };
  for (const auto& token : tokens_) {
    const auto takes = static_cast<std::size_t>(ExprOps::arity(token.op));
    if (takes == 0) {
      const auto* value = token.op == Op::name ? symbols.find(token.name) : nullptr;
      stack.push_back({value ? Token{Op::constant, *value, {}} : token});
      continue;
    }
    const std::size_t first = stack.size() - takes;
    if (token.op == Op::select && constant(stack[first])) {
      auto taken = std::move(stack[first][0].value ? stack[first + 1] : stack[first + 2]);
      stack.resize(first);
      stack.push_back(std::move(taken));
      continue;
    }
    bool fold = true;
    for (std::size_t i = first; i < stack.size(); ++i) fold = fold && constant(stack[i]);
    std::vector<Token> run;
    for (std::size_t i = first; i < stack.size(); ++i) run.insert(run.end(), stack[i].begin(), stack[i].end());
    run.push_back(token);
    if (fold)
      if (const auto value = ExprOps::make(run).eval({})) run = {Token{Op::constant, *value, {}}};
    stack.resize(first);
    stack.push_back(std::move(run));
  }
  return ExprOps::make(std::move(stack[0]));
}

std::vector<std::string> Expr::names() const {
  std::vector<std::string> out;
  for (const auto& token : tokens_)
    if (token.op == Op::name) out.push_back(token.name);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

bool Expr::is_constant() const { return tokens_.size() == 1 && tokens_[0].op == Op::constant; }

}  // namespace tunerd
