// The daemon's configuration: flags over environment over file over defaults. Every bad value names field, value and
// what was expected.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model/json_reader.h"

namespace tunerd::daemon {

struct Config {
  std::filesystem::path socket, cache, base;
  std::vector<std::filesystem::path> templates;  // the shipped ones first; --templates adds
  std::filesystem::path devices;
  bool read_only = false;
  int device = 0;            // CUDA ordinal
  std::string offline;       // architecture or device name: serve without a GPU
  std::string replay;        // recording: measure from it
  std::int64_t workers = 0;  // compile workers; 0: one a core
  std::string strategy = "learned";
  double sol_target = 0.95;
  std::int64_t budget_variants = 160;
  double budget_seconds = 30;
  std::int64_t patience = 48;
  bool tune = true;  // tune in the background after a miss
  double compile_deadline_s = 60, measure_deadline_s = 60, launch_deadline_s = 10;
  std::int64_t max_clients = 1024;
  std::int64_t queue_limit = 10'000;  // problems waiting to be tuned
  std::string log_level = "info";
};

Json to_json(const Config& config);

struct CommandLine {
  Config config;
  bool check_only = false;
  bool exit_now = false;  // --help or --version was printed
};
// Reads flags, $SOL_TARGET and $TUNERD_<FIELD>, and the file of --config or $TUNERD_CONFIG.
Result<CommandLine> read_command_line(int argc, char** argv);
// Applies one file's fields; unknown keys are errors that suggest the nearest.
Status apply_file(const Json& document, const std::string& where, Config& config);
Status apply_environment(const std::vector<std::pair<std::string, std::string>>& environment, Config& config);
Status check(const Config& config);

}  // namespace tunerd::daemon
