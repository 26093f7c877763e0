#include <CLI/CLI.hpp>
#include <iostream>

#include "ctl/connection.h"
#include "ctl/output.h"
#include "ctl/shapes.h"

namespace tunerd::ctl {
namespace {

struct Options {
  std::string op;
  std::vector<std::string> words;
};

// One request, printed as JSON or by `print`.
Result<int> ask(const Globals& globals, const std::string& type, Json fields, void (*print)(const Json&)) {
  TRY_ASSIGN(Connection connection, Connection::open(globals));
  TRY_ASSIGN(const Reply reply, connection.call(type, std::move(fields)));
  if (globals.json) {
    print_json(reply.fields);
  } else {
    print(reply.fields);
  }
  return kOk;
}

const Json& list_of(const Json& object, const char* key) {
  static const Json kEmpty = Json::array();
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? *found : kEmpty;
}

// Winners carry either "source" or "measured".
std::string source_of(const Json& row) {
  const auto measured = row.find("measured");
  if (measured != row.end() && measured->is_boolean()) return measured->get<bool>() ? "measured" : "predicted";
  return text_of(row, "source", "-");
}

std::string problem_of(const Json& row) {
  const auto key = row.find("problem_key");
  return key != row.end() ? text_of(row, "problem_key") : text_of(row, "problem", "(every problem)");
}

void print_status(const Json& status) { print_plain(std::cout, status); }

void print_winners(const Json& reply) {
  Table table({"problem", "variant", "T_SOL us", "time us", "SOL", "source", "at"}, {false, false, true, true, true});
  for (const Json& row : list_of(reply, "winners")) {
    table.add({problem_of(row), text_of(row, "variant", "-"), format_us(number_of(row, "t_sol_us")),
               format_us(number_of(row, "time_us")), format_fraction(number_of(row, "sol_fraction")), source_of(row),
               text_of(row, "at", "-")});
  }
  if (table.empty()) {
    std::cout << "no winners\n";
  } else {
    table.print(std::cout);
  }
}

void print_quarantine(const Json& reply) {
  const Json& rows = reply.contains("variants") ? list_of(reply, "variants") : list_of(reply, "quarantine");
  Table table({"variant", "problem", "reason", "at"});
  for (const Json& row : rows) {
    const std::string problem = problem_of(row);
    table.add({text_of(row, "variant", "-"), problem.empty() ? "(every problem)" : problem, text_of(row, "reason", "-"),
               text_of(row, "at", "-")});
  }
  if (table.empty()) {
    std::cout << "no variant is quarantined\n";
  } else {
    table.print(std::cout);
  }
}

void print_shown(const Json& reply) {
  const auto winner = reply.find("winner");
  if (winner == reply.end() || !winner->is_object()) {
    std::cout << "no winner\n";
  } else {
    print_winners({{"winners", Json::array({*winner})}});
  }
  Table table({"variant", "median us", "status", "tainted", "gates", "at"}, {false, true});
  for (const Json& sample : list_of(reply, "samples")) {
    std::string gates;
    for (const Json& gate : list_of(sample, "gates")) {
      const bool passed = gate.value("passed", Json(false)) == Json(true);
      gates += (gates.empty() ? "" : " ") + text_of(gate, "gate", "?") + (passed ? "" : ":FAILED");
    }
    const std::string taint = text_of(sample, "taint");
    const std::string error = text_of(sample, "error");
    table.add({text_of(sample, "variant", "-"), format_us(number_of(sample, "median_us")),
               text_of(sample, "status", "-") + (error.empty() ? "" : " (" + error + ")"),
               sample.value("tainted", Json(false)) == Json(true) ? (taint.empty() ? "yes" : taint) : "no", gates,
               text_of(sample, "at", "-")});
  }
  if (!table.empty()) {
    std::cout << '\n';
    table.print(std::cout);
  }
  if (!list_of(reply, "quarantine").empty()) {
    std::cout << "\nquarantined\n";
    print_quarantine({{"variants", list_of(reply, "quarantine")}});
  }
}

void print_explanation(const Json& reply) {
  const std::string nearest = text_of(reply, "nearest_key");
  if (reply.value("hit", Json(false)) == Json(true)) {
    std::cout << "hit: " << nearest << '\n';
    return;
  }
  std::cout << (nearest.empty() ? "miss: nothing of this op is stored\n"
                                : "miss: the nearest stored is " + nearest + "\n");
  for (const Json& difference : list_of(reply, "differences")) {
    std::cout << "  " << text_of(difference, "field") << ": " << text_of(difference, "there") << " there, "
              << text_of(difference, "here") << " here\n";
  }
}

void print_nothing(const Json&) {}

using Print = void (*)(const Json&);

void add_plain(CLI::App& app, const Globals& globals, Run& chosen, const char* name, const char* help, Print print) {
  auto* command = app.add_subcommand(name, help);
  command->callback([&globals, &chosen, name, print] {
    chosen = [&globals, name, print] { return ask(globals, name, Json::object(), print); };
  });
}

void add_of_problem(CLI::App& app, const Globals& globals, Run& chosen, const char* name, const char* help,
                    Print print) {
  auto* command = app.add_subcommand(name, help);
  auto options = std::make_shared<Options>();
  command->add_option("op", options->op, "Name of the op")->required();
  command->add_option("fields", options->words, "Dimensions, dtype and attributes as name=value");
  command->callback([&globals, &chosen, name, print, options] {
    chosen = [&globals, name, print, options]() -> Result<int> {
      TRY_ASSIGN(Json problem, problem_from_words(options->op, options->words));
      return ask(globals, name, {{"problem", std::move(problem)}}, print);
    };
  });
}

}  // namespace

void add_status(CLI::App& app, const Globals& globals, Run& chosen) {
  add_plain(app, globals, chosen, "status", "What the daemon runs on, has stored and is doing", print_status);
}

void add_quarantine(CLI::App& app, const Globals& globals, Run& chosen) {
  add_plain(app, globals, chosen, "quarantine", "Variants that broke a worker and are not tried again",
            print_quarantine);
}

void add_stop(CLI::App& app, const Globals& globals, Run& chosen) {
  add_plain(app, globals, chosen, "stop", "Ask the daemon to end (its own user and root)", print_nothing);
}

void add_list(CLI::App& app, const Globals& globals, Run& chosen) {
  auto* command = app.add_subcommand("list", "The winners of this device and environment");
  auto options = std::make_shared<Options>();
  command->add_option("op", options->op, "Only this op");
  command->callback([&globals, &chosen, options] {
    chosen = [&globals, options] {
      Json fields = Json::object();
      if (!options->op.empty()) fields["op"] = options->op;
      return ask(globals, "list", std::move(fields), print_winners);
    };
  });
}

void add_show(CLI::App& app, const Globals& globals, Run& chosen) {
  add_of_problem(app, globals, chosen, "show", "One problem's winner, every sample, what is quarantined", print_shown);
}

void add_explain(CLI::App& app, const Globals& globals, Run& chosen) {
  add_of_problem(app, globals, chosen, "explain",
                 "Why a problem misses: the nearest stored key and each field that differs", print_explanation);
}

}  // namespace tunerd::ctl
