#include "readable.h"

#include "wire/symbols.h"

namespace tunerd::wire {
namespace {

Json value_or_text(const Expr& expr, const Symbols& symbols) {
  const auto value = expr.eval(symbols);
  return value ? Json(*value) : Json(expr.text());
}

Json values_or_texts(const std::vector<Expr>& exprs, const Symbols& symbols) {
  Json out = Json::array();
  for (const Expr& expr : exprs) out.push_back(value_or_text(expr, symbols));
  return out;
}

Symbols symbols_or_none(const Recipe& recipe, const Json& problem) {
  auto symbols = recipe_symbols(recipe, problem);
  return symbols ? std::move(*symbols) : Symbols{};
}

const RecipeTensor* tensor_named(const Recipe& recipe, const std::string& name) {
  for (const RecipeTensor& tensor : recipe.tensors)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

Json readable_argument(const Recipe& recipe, const Argument& argument, const Symbols& symbols) {
  switch (argument.kind) {
    case Argument::Kind::tensor: {
      Json out{{"kind", "tensor"}, {"name", argument.name}};
      if (const RecipeTensor* tensor = tensor_named(recipe, argument.name)) {
        out["dtype"] = std::string(to_string(tensor->dtype));
        out["output"] = tensor->output;
        out["present"] = tensor->present;
        out["shape"] = values_or_texts(tensor->shape, symbols);
      }
      return out;
    }
    case Argument::Kind::scalar: {
      Json out{{"kind", "scalar"}, {"name", argument.name}, {"type", argument.type}};
      if (argument.real.empty()) {
        out["value"] = value_or_text(argument.expr, symbols);
      } else {
        out["real"] = argument.real;
        out["default"] = argument.real_default;
      }
      return out;
    }
    case Argument::Kind::tensor_map:
      return {{"kind", "tensor_map"},
              {"name", argument.name},
              {"dtype", std::string(to_string(argument.map.dtype))},
              {"dims", values_or_texts(argument.map.dims, symbols)},
              {"strides_bytes", values_or_texts(argument.map.strides_bytes, symbols)},
              {"box", argument.map.box},
              {"swizzle", argument.map.swizzle}};
    case Argument::Kind::workspace:
      break;
  }
  return {{"kind", "workspace"},
          {"name", argument.name},
          {"bytes", value_or_text(argument.expr, symbols)},
          {"align_bytes", argument.align_bytes},
          {"init", argument.init}};
}

}  // namespace

Json readable_launch(const Recipe& recipe, const Json& problem) {
  const Symbols symbols = symbols_or_none(recipe, problem);
  const auto concrete = concrete_launch(recipe, symbols);
  Json grid = Json::array();
  for (std::size_t i = 0; i < 3; ++i)
    grid.push_back(concrete ? Json(concrete->grid[i]) : value_or_text(recipe.launch.grid[i], symbols));
  return {{"grid", std::move(grid)},
          {"block", recipe.launch.block},
          {"cluster", recipe.launch.cluster},
          {"dynamic_smem_bytes", recipe.launch.dynamic_smem_bytes},
          {"workspace_bytes", concrete ? Json(concrete->workspace_bytes) : Json(nullptr)},
          {"pdl", recipe.launch.pdl},
          {"cooperative", recipe.launch.cooperative}};
}

Json readable_arguments(const Recipe& recipe, const Json& problem) {
  const Symbols symbols = symbols_or_none(recipe, problem);
  Json out = Json::array();
  for (const Argument& argument : recipe.arguments) out.push_back(readable_argument(recipe, argument, symbols));
  return out;
}

}  // namespace tunerd::wire
