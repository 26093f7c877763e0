#include "model/recipe.h"

namespace tunerd {
namespace {

constexpr std::int64_t kMaxGridX = 2147483647;
constexpr std::int64_t kMaxGridYz = 65535;

Unexpected with_context(Error error, const std::string& field) {
  error.message = field + ": " + error.message;
  error.field = field;
  return Unexpected(std::move(error));
}

}  // namespace

Status check_validity(const std::vector<Rule>& checks, const Symbols& symbols) {
  for (const Rule& rule : checks) {
    const Result<std::int64_t> holds = rule.expr.eval(symbols);
    if (holds && *holds != 0) continue;
    if (!holds) return with_context(holds.error(), "the check '" + rule.reason + "'");
    const std::vector<std::string> names = rule.expr.names();
    std::string field, values;
    for (const std::string& name : names) {
      const std::int64_t* value = symbols.find(name);
      if (value == nullptr) continue;  // in a branch of select that was not taken
      field.append(field.empty() ? "" : ",").append(name);
      values.append(values.empty() ? "" : " ").append(name).append("=").append(std::to_string(*value));
    }
    std::string message = rule.reason;
    if (!values.empty()) message.append(" (").append(values).append(")");
    return Unexpected(Error{Code::invalid_argument, std::move(message), field, values, rule.expr.text(), {}});
  }
  return {};
}

Result<ConcreteLaunch> concrete_launch(const Recipe& recipe, const Symbols& symbols) {
  TRY(check_validity(recipe.checks, symbols));
  ConcreteLaunch launch;
  launch.block = recipe.launch.block;
  launch.cluster = recipe.launch.cluster;
  launch.dynamic_smem_bytes = recipe.launch.dynamic_smem_bytes;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string field = "launch.grid[" + std::to_string(i) + "]";
    const Result<std::int64_t> extent = recipe.launch.grid[i].eval(symbols);
    if (!extent) return with_context(extent.error(), field);
    const std::int64_t most = i == 0 ? kMaxGridX : kMaxGridYz;
    if (*extent < 1 || *extent > most) {
      return bad_input(field, std::to_string(*extent), "1 to " + std::to_string(most));
    }
    if (launch.cluster[i] < 1 || *extent % launch.cluster[i] != 0) {
      return bad_input(field, std::to_string(*extent),
                       "a multiple of the cluster's " + std::to_string(launch.cluster[i]));
    }
    launch.grid[i] = *extent;
  }
  for (const Argument& argument : recipe.arguments) {
    if (argument.kind != Argument::Kind::workspace) continue;
    const Result<std::int64_t> bytes = argument.expr.eval(symbols);
    if (!bytes) return with_context(bytes.error(), "workspace");
    if (*bytes < 0) return bad_input("workspace", std::to_string(*bytes), "no negative size");
    launch.workspace_bytes = *bytes;
  }
  return launch;
}

}  // namespace tunerd
