#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "ctl/command.h"
#include "ctl/output.h"

namespace tunerd::ctl {
namespace {

constexpr const char* kFooter =
    "Exit codes\n"
    "  0    done\n"
    "  1    failed: the error says why\n"
    "  2    bad input: an unknown command, option, op, dimension, dtype or attribute; a broken file\n"
    "  3    sweep: some problems failed (they are listed)\n"
    "  4    a miss: preload --expect-hit, get --wait cached\n"
    "  5    no tunerd answers at the socket\n"
    "  130  interrupted\n"
    "Results go to stdout, progress and errors to stderr; with --json both are JSON.";

void collect_names(const CLI::App& app, std::vector<std::string>& names) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
}

bool known(const std::vector<std::string>& names, const std::string& word) {
  return std::find(names.begin(), names.end(), word) != names.end();
}

// CLI11 says what it did not expect; which word that was, and the nearest that it would have, is ours to add.
Error parse_error(const CLI::App& app, const CLI::ParseError& thrown, int argc, char** argv) {
  std::vector<std::string> commands, options;
  collect_names(app, options);
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(command->get_name());
    collect_names(*command, options);
  }
  Error error{Code::invalid_argument, thrown.what(), {}, {}, {}, {}};
  const bool has_command = !app.get_subcommands().empty();
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    const std::string word = text.substr(0, text.find('='));
    if (word.rfind("--", 0) == 0) {
      if (!known(options, word)) {
        error.field = "option";
        error.value = word;
        error.suggestion = nearest_match(word, options);
        return error;
      }
      // These take the next word with them.
      if (text == word && known({"--socket", "--templates", "--devices"}, word)) ++i;
    } else if (!has_command && word.rfind('-', 0) != 0 && !known(commands, word)) {
      return unknown_name("command", text, commands).value();
    }
  }
  return error;
}

}  // namespace

int run_tunerctl(int argc, char** argv) {
  CLI::App app{"Talks to tunerd, the kernel-autotuning daemon", "tunerctl"};
  Globals globals;
  Run chosen;
  app.fallthrough();
  app.require_subcommand(1);
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("tunerctl 0.1.0"));
  app.add_option(
      "--socket", globals.socket,
      "The daemon's socket; default $TUNERD_SOCKET, $XDG_RUNTIME_DIR/tunerd/tunerd.sock, /run/tunerd/tunerd.sock "
      "(root), /tmp/tunerd-UID/tunerd.sock");
  app.add_flag("--json", globals.json, "Print JSON");
  app.add_option("--templates", globals.templates,
                 "A further template folder, for commands that ask no daemon; repeatable")
      ->expected(1)
      ->take_all();
  app.add_option("--devices", globals.devices, "The folder of device specs, for commands that ask no daemon");
  for (const auto add : {add_get, add_tune, add_sweep, add_status, add_list, add_show, add_explain, add_sol,
                         add_variants, add_compile, add_export, add_import, add_preload, add_quarantine, add_stop}) {
    add(app, globals, chosen);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    const bool json =
        std::any_of(argv + 1, argv + argc, [](const char* word) { return std::string_view(word) == "--json"; });
    return report(parse_error(app, error, argc, argv), json);
  }
  const Result<int> code = chosen();
  return code ? *code : report(code.error(), globals.json);
}

}  // namespace tunerd::ctl
