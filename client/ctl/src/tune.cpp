#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "ctl/connection.h"
#include "ctl/output.h"
#include "ctl/shapes.h"
#include "ctl/tuning.h"

namespace tunerd::ctl {
namespace {

constexpr int kGraceMs = 10'000;

struct Options {
  std::string op;
  std::vector<std::string> words;
  TuneOptions tuning;
};

Result<int> run(const Globals& globals, const Options& options) {
  TRY_ASSIGN(const Json problem, problem_from_words(options.op, options.words));
  const std::int64_t wait_ms = options.tuning.wait_s * 1000;
  TRY_ASSIGN(Json request, tune_request(problem, options.tuning, wait_ms));
  TRY_ASSIGN(Connection connection, Connection::open(globals));
  TRY_ASSIGN(const Reply reply, connection.call("tune", std::move(request), int(wait_ms) + kGraceMs));
  const Json& answer = reply.fields.contains("answer") ? reply.fields["answer"] : reply.fields;
  if (globals.json) {
    print_json(reply.fields);
  } else {
    std::cout << report_line(reply.fields) << '\n';
    Table counts(
        {"considered", "valid", "compiled", "rejected", "measured", "wrong", "faulted", "wall s", "stopped by"});
    const auto count = [&](const char* key) { return text_of(reply.fields, key, "-"); };
    counts.add({count("considered"), count("valid"), count("compiled"), count("rejected"), count("measured"),
                count("wrong"), count("faulted"), count("wall_s"), count("stop_reason")});
    counts.print(std::cout);
    if (const std::string note = text_of(answer, "note"); !note.empty()) std::cout << "note: " << note << '\n';
  }
  const std::string state = text_of(reply.fields, "state");
  return state == "failed" || state == "pending" ? kFailed : kOk;
}

}  // namespace

void add_tune_options(CLI::App& command, TuneOptions& options) {
  command.add_option("--wait-s", options.wait_s, "Longest wait for one problem, at most 3600")->capture_default_str();
  command.add_option("--budget-variants", options.budget_variants, "Measure at most so many variants a problem");
  command.add_option("--budget-seconds", options.budget_seconds, "Tune a problem at most so long");
  command.add_option("--sol-target", options.sol_target, "Stop at this SOL fraction, over 0 and at most 1");
  command.add_option("--patience", options.patience, "Stop after so many measurements without a gain");
}

Result<Json> tune_request(const Json& problem, const TuneOptions& options, std::int64_t wait_ms) {
  if (options.wait_s < 1 || options.wait_s > 3600)
    return bad_input("--wait-s", std::to_string(options.wait_s), "1 to 3600");
  if (options.budget_variants < 0) {
    return bad_input("--budget-variants", std::to_string(options.budget_variants), "a positive number");
  }
  if (options.patience < 0) return bad_input("--patience", std::to_string(options.patience), "a positive number");
  if (options.budget_seconds < 0) {
    return bad_input("--budget-seconds", std::to_string(options.budget_seconds), "a positive number");
  }
  if (options.sol_target < 0 || options.sol_target > 1) {
    return bad_input("--sol-target", std::to_string(options.sol_target), "over 0 and at most 1");
  }
  Json budget = Json::object();
  if (options.budget_variants > 0) budget["variants"] = options.budget_variants;
  if (options.budget_seconds > 0) budget["seconds"] = options.budget_seconds;
  if (options.sol_target > 0) budget["sol_target"] = options.sol_target;
  if (options.patience > 0) budget["patience"] = options.patience;
  Json request{{"problem", problem}, {"wait_ms", wait_ms}};
  if (!budget.empty()) request["budget"] = std::move(budget);
  return request;
}

std::string report_line(const Json& report) {
  static const Json kNone = Json::object();
  const Json& answer = report.contains("answer") ? report["answer"] : kNone;
  return text_of(report, "problem", "?") + "  " + text_of(answer, "variant", "-") + "  T_SOL " +
         format_us(number_of(answer, "t_sol_us")) + " us  time " + format_us(number_of(answer, "time_us")) +
         " us  SOL " + format_fraction(number_of(answer, "sol_fraction")) + "  " + text_of(answer, "source", "-") +
         "  " + text_of(report, "state", "?");
}

void add_tune(CLI::App& app, const Globals& globals, Run& chosen) {
  auto* command = app.add_subcommand("tune", "Tune one problem now and wait for the end");
  auto options = std::make_shared<Options>();
  command->add_option("op", options->op, "Name of the op")->required();
  command->add_option("fields", options->words, "Dimensions, dtype and attributes as name=value");
  add_tune_options(*command, options->tuning);
  command->callback([&globals, &chosen, options] { chosen = [&globals, options] { return run(globals, *options); }; });
}

}  // namespace tunerd::ctl
