// What a command is given and how it is registered. A command's function parses nothing: CLI11 has filled its options.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "model/result.h"

namespace CLI {
class App;
}

namespace tunerd::ctl {

// Exit codes, also in `tunerctl --help`.
inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kSomeFailed = 3;
inline constexpr int kMiss = 4;
inline constexpr int kNoDaemon = 5;
inline constexpr int kInterrupted = 130;

// Options of every command.
struct Globals {
  std::string socket;  // empty: default_socket()
  bool json = false;
  std::vector<std::string> templates;  // after the default folders
  std::string devices;                 // empty: default_devices_folder()
};

using Run = std::function<Result<int>()>;  // the exit code

// Adds the subcommand; when the command line names it, `chosen` becomes its function.
void add_get(CLI::App& app, const Globals& globals, Run& chosen);
void add_tune(CLI::App& app, const Globals& globals, Run& chosen);
void add_sweep(CLI::App& app, const Globals& globals, Run& chosen);
void add_status(CLI::App& app, const Globals& globals, Run& chosen);
void add_list(CLI::App& app, const Globals& globals, Run& chosen);
void add_show(CLI::App& app, const Globals& globals, Run& chosen);
void add_explain(CLI::App& app, const Globals& globals, Run& chosen);
void add_quarantine(CLI::App& app, const Globals& globals, Run& chosen);
void add_stop(CLI::App& app, const Globals& globals, Run& chosen);
void add_sol(CLI::App& app, const Globals& globals, Run& chosen);
void add_variants(CLI::App& app, const Globals& globals, Run& chosen);
void add_compile(CLI::App& app, const Globals& globals, Run& chosen);
void add_export(CLI::App& app, const Globals& globals, Run& chosen);
void add_import(CLI::App& app, const Globals& globals, Run& chosen);
void add_preload(CLI::App& app, const Globals& globals, Run& chosen);

// The whole program: parses, runs, reports. Returns the exit code.
int run_tunerctl(int argc, char** argv);

}  // namespace tunerd::ctl
