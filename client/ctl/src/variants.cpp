#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>

#include "ctl/connection.h"
#include "ctl/local.h"
#include "ctl/output.h"
#include "ctl/shapes.h"
#include "search/space.h"

namespace tunerd::ctl {
namespace {

constexpr std::size_t kShownVariants = 20;

struct Options {
  std::string op, device, arch;
  std::vector<std::string> words;
  bool valid_only = false;
};

Json row_of(const Candidate& candidate) {
  return {{"variant", candidate.variant.text()},
          {"valid", candidate.valid},
          {"reason", candidate.reason},
          {"predicted_us", candidate.valid ? Json(candidate.predicted_us) : Json()}};
}

// Valid ones best first, then the others in the order of enumeration.
Result<Json> enumerate(const Globals& globals, const Options& options) {
  TRY_ASSIGN(const Json fields, fields_from_words(options.words));
  TRY_ASSIGN(const Catalog catalog, load_catalog(globals));
  TRY_ASSIGN(const OpEntry* entry, catalog.op(options.op));
  TRY_ASSIGN(const Problem problem, make_problem(entry->op, fields));
  TRY_ASSIGN(const DeviceSpec device, choose_device(globals, options.device, options.arch));
  TRY_ASSIGN(std::vector<Candidate> space, enumerate_space(*entry, problem, device));
  TRY_ASSIGN(const std::vector<std::size_t> order, rank_space(space, *entry, problem, device));
  Json rows = Json::array();
  for (const std::size_t index : order) rows.push_back(row_of(space[index]));
  for (const Candidate& candidate : space) {
    if (!candidate.valid) rows.push_back(row_of(candidate));
  }
  return rows;
}

Result<Json> ask(const Globals& globals, const Options& options) {
  TRY_ASSIGN(Json problem, problem_from_words(options.op, options.words));
  TRY_ASSIGN(Connection connection, Connection::open(globals));
  TRY_ASSIGN(Reply reply, connection.call("variants", {{"problem", std::move(problem)}}));
  if (!reply.fields.contains("variants") || !reply.fields["variants"].is_array()) {
    return fail(Code::corrupt, "tunerd's reply holds no list of variants.");
  }
  return std::move(reply.fields["variants"]);
}

// "stages do not fit (smem=246880)": the summary counts sentences, not the values in them.
std::string without_values(const std::string& reason) {
  const std::size_t open = reason.rfind(" (");
  const bool values = open != std::string::npos && reason.back() == ')' && reason.find('=', open) != std::string::npos;
  return values ? reason.substr(0, open) : reason;
}

void print(const Json& rows) {
  Table table({"variant", "predicted us"}, {false, true});
  std::map<std::pair<std::string, std::string>, std::size_t> reasons;
  std::size_t valid = 0;
  for (const Json& row : rows) {
    if (row.value("valid", Json(false)) != Json(true)) {
      const std::string variant = text_of(row, "variant");
      ++reasons[{variant.substr(0, variant.find('{')), without_values(text_of(row, "reason", "?"))}];
    } else if (++valid <= kShownVariants) {
      table.add({text_of(row, "variant"), format_us(number_of(row, "predicted_us"))});
    }
  }
  std::cout << valid << " valid of " << rows.size() << '\n';
  if (!table.empty()) table.print(std::cout);
  if (valid > kShownVariants) std::cout << "… and " << valid - kShownVariants << " more (--json lists all)\n";
  if (reasons.empty()) return;
  std::vector<std::pair<std::pair<std::string, std::string>, std::size_t>> sorted(reasons.begin(), reasons.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::cout << '\n';
  Table why({"out", "template", "reason"}, {true});
  for (const auto& [what, count] : sorted) why.add({std::to_string(count), what.first, what.second});
  why.print(std::cout);
}

Result<int> run(const Globals& globals, const Options& options) {
  const bool local = !options.device.empty() || !options.arch.empty();
  TRY_ASSIGN(Json rows, local ? enumerate(globals, options) : ask(globals, options));
  if (options.valid_only) {
    Json kept = Json::array();
    for (Json& row : rows) {
      if (row.value("valid", Json(false)) == Json(true)) kept.push_back(std::move(row));
    }
    rows = std::move(kept);
  }
  if (globals.json) {
    print_json(rows);
  } else {
    print(rows);
  }
  return kOk;
}

}  // namespace

void add_variants(CLI::App& app, const Globals& globals, Run& chosen) {
  auto* command =
      app.add_subcommand("variants", "A problem's whole space: which variants are valid, and why the others are out");
  auto options = std::make_shared<Options>();
  command->add_option("op", options->op, "Name of the op")->required();
  command->add_option("fields", options->words, "Dimensions, dtype and attributes as name=value");
  command->add_option("--arch", options->arch, "For this architecture, such as sm_90a; then no daemon is asked");
  command->add_option("--device", options->device, "For this device of config/devices; then no daemon is asked");
  command->add_flag("--valid", options->valid_only, "Only the valid ones");
  command->callback([&globals, &chosen, options] { chosen = [&globals, options] { return run(globals, *options); }; });
}

}  // namespace tunerd::ctl
