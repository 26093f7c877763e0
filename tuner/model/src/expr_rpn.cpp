#include "expr_ops.h"
#include "json_text.h"

namespace tunerd {

using Op = ExprOps::Op;

namespace {
constexpr std::size_t kMaxRules = 256;
}  // namespace

Result<Expr> Expr::from_rpn(const Json& array) {
  const auto bad = [&](const Json& value, const char* expected) {
    return bad_input("expression", shown(value), expected);
  };
  if (is_int64(array)) return Expr(array.get<std::int64_t>());
  if (!array.is_array() || array.empty() || array.size() > kMaxTokens)
    return bad(array.is_array() ? Json("a list of " + std::to_string(array.size())) : array, "1 to 256 RPN tokens");
  std::vector<Token> tokens;
  tokens.reserve(array.size());
  for (const auto& item : array) {
    if (is_int64(item)) {
      tokens.push_back({Op::constant, item.get<std::int64_t>(), {}});
    } else if (item.is_string()) {
      const auto& word = item.get_ref<const std::string&>();
      if (const auto* known = ExprOps::find(word))
        tokens.push_back({known->op, 0, {}});
      else if (ExprOps::is_name(word))
        tokens.push_back({Op::name, 0, word});
      else
        return bad(item, "an operator word or a name of [a-z0-9_]");
    } else {
      return bad(item, "an integer or a word");
    }
  }
  if (auto ok = ExprOps::check(tokens); !ok) return Unexpected(ok.error());
  return ExprOps::make(std::move(tokens));
}

Json Expr::rpn() const {
  Json out = Json::array();
  for (const auto& token : tokens_) {
    if (token.op == Op::constant)
      out.push_back(token.value);
    else if (token.op == Op::name)
      out.push_back(token.name);
    else
      out.push_back(std::string(ExprOps::find(token.op)->text));
  }
  return out;
}

std::string Expr::text() const {
  // Every operand carries parentheses unless it binds tighter than its operator: it parses back to the same tokens.
  struct Part {
    std::string text;
    int precedence;
  };
  constexpr int kTight = 9;
  std::vector<Part> stack;
  for (const auto& token : tokens_) {
    if (token.op == Op::constant) {
      stack.push_back({std::to_string(token.value), token.value < 0 ? 0 : kTight});
      continue;
    }
    if (token.op == Op::name) {
      stack.push_back({token.name, kTight});
      continue;
    }
    const auto* word = ExprOps::find(token.op);
    const std::size_t first = stack.size() - static_cast<std::size_t>(word->arity);
    const auto wrapped = [&](std::size_t i, int least) {
      const auto& part = stack[i];
      return part.precedence >= least ? part.text : "(" + part.text + ")";
    };
    Part part;
    if (word->precedence > 0) {
      part = {wrapped(first, word->precedence) + " " + std::string(word->text) + " " +
                  wrapped(first + 1, word->precedence + 1),
              word->precedence};
    } else if (word->arity == 1) {
      // -(5) is an operator and a constant, -5 one constant.
      const bool digits = stack[first].text[0] >= '0' && stack[first].text[0] <= '9';
      part = {(token.op == Op::neg ? "-" : "!") + wrapped(first, digits ? kTight + 1 : 8), 8};
    } else {
      std::string text = std::string(word->text) + "(";
      for (std::size_t i = first; i < stack.size(); ++i) text += (i > first ? ", " : "") + stack[i].text;
      part = {text + ")", kTight};
    }
    stack.resize(first);
    stack.push_back(std::move(part));
  }
  return stack[0].text;
}

Result<std::vector<Rule>> rules_from_json(const Json* array, const std::string& path) {
  std::vector<Rule> rules;
  if (array == nullptr) return rules;
  if (!array->is_array() || array->size() > kMaxRules)
    return bad_input(path, shown(*array), "a list of at most 256 { \"if\": expression, \"reason\": text }");
  for (std::size_t i = 0; i < array->size(); ++i) {
    const std::string where = path + "[" + std::to_string(i) + "]";
    JsonReader reader((*array)[i], where);
    Rule rule;
    TRY_ASSIGN(rule.reason, reader.string("reason"));
    const Json* expr = reader.any("if");
    if (expr == nullptr) return bad_input(where + ".if", "", "an expression");
    TRY_ASSIGN(rule.expr, Expr::from_manifest(*expr, where + ".if"));
    TRY(reader.finish());
    rules.push_back(std::move(rule));
  }
  return rules;
}

Json rules_to_json(const std::vector<Rule>& rules) {
  Json out = Json::array();
  for (const auto& rule : rules) out.push_back({{"if", rule.expr.rpn()}, {"reason", rule.reason}});
  return out;
}

Result<std::vector<Rule>> rules_from_rpn(const Json& array) {
  if (!array.is_array() || array.size() > kMaxRules)
    return bad_input("checks", shown(array), "a list of at most 256 checks");
  std::vector<Rule> rules;
  for (std::size_t i = 0; i < array.size(); ++i) {
    JsonReader reader(array[i], "checks[" + std::to_string(i) + "]");
    Rule rule;
    TRY_ASSIGN(rule.reason, reader.string("reason"));
    const Json* expr = reader.any("if");
    if (expr == nullptr) return bad_input("checks[" + std::to_string(i) + "].if", "", "RPN");
    TRY_ASSIGN(rule.expr, Expr::from_rpn(*expr));
    TRY(reader.finish());
    rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace tunerd
