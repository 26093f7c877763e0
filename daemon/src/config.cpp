#include "daemon/config.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>

#include "model/paths.h"
#include "search/strategy.h"

extern char** environ;

namespace tunerd::daemon {
namespace {

// One list of fields serves the file, the environment and the printout. `set` takes JSON; from the environment text is
// converted first.
struct Field {
  const char* name;
  const char* kind;  // path | text | integer | number | boolean | paths
  std::function<Json(const Config&)> get;
  std::function<void(Config&, const Json&)> set;
};

template <class T>
Field field(const char* name, const char* kind, T Config::*member) {
  return {name, kind,
          [member](const Config& config) -> Json {
            if constexpr (std::is_same_v<T, std::filesystem::path>)
              return (config.*member).string();
            else
              return config.*member;
          },
          [member](Config& config, const Json& value) {
            if constexpr (std::is_same_v<T, std::filesystem::path>)
              config.*member = value.get<std::string>();
            else
              config.*member = value.get<T>();
          }};
}

const std::vector<Field>& fields() {
  static const std::vector<Field> list{
      field("socket", "text", &Config::socket),
      field("cache", "text", &Config::cache),
      field("base", "text", &Config::base),
      {"templates", "texts",
       [](const Config& config) {
         Json out = Json::array();
         for (const auto& path : config.templates) out.push_back(path.string());
         return out;
       },
       [](Config& config, const Json& value) {
         config.templates.clear();
         for (const auto& path : value) config.templates.emplace_back(path.get<std::string>());
       }},
      field("devices", "text", &Config::devices),
      field("read_only", "boolean", &Config::read_only),
      field("device", "integer", &Config::device),
      field("offline", "text", &Config::offline),
      field("replay", "text", &Config::replay),
      field("workers", "integer", &Config::workers),
      field("strategy", "text", &Config::strategy),
      field("sol_target", "number", &Config::sol_target),
      field("budget_variants", "integer", &Config::budget_variants),
      field("budget_seconds", "number", &Config::budget_seconds),
      field("patience", "integer", &Config::patience),
      field("tune", "boolean", &Config::tune),
      field("compile_deadline_s", "number", &Config::compile_deadline_s),
      field("measure_deadline_s", "number", &Config::measure_deadline_s),
      field("launch_deadline_s", "number", &Config::launch_deadline_s),
      field("max_clients", "integer", &Config::max_clients),
      field("queue_limit", "integer", &Config::queue_limit),
      field("log_level", "text", &Config::log_level),
  };
  return list;
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& entry : fields()) out.emplace_back(entry.name);
  return out;
}

bool has_kind(const Json& value, std::string_view kind) {
  if (kind == "text") return value.is_string();
  if (kind == "integer") return value.is_number_integer();
  if (kind == "number") return value.is_number();
  if (kind == "boolean") return value.is_boolean();
  return value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& item) { return item.is_string(); });
}

Status set(const Field& entry, const std::string& where, const Json& value, Config& config) {
  static const std::map<std::string, std::string> expected{{"text", "a text"},
                                                           {"integer", "an integer"},
                                                           {"number", "a number"},
                                                           {"boolean", "true or false"},
                                                           {"texts", "a list of texts"}};
  if (!has_kind(value, entry.kind)) return bad_input(where, value.dump().substr(0, 80), expected.at(entry.kind));
  entry.set(config, value);
  return {};
}

// Text from the environment as JSON of the field's kind; what does not convert stays text and fails the kind's check.
Json converted(const Field& entry, const std::string& text) {
  const std::string kind = entry.kind;
  if (kind == "text") return text;
  if (kind == "texts") {
    Json out = Json::array();
    std::size_t begin = 0;
    while (begin <= text.size()) {
      const auto end = std::min(text.find(':', begin), text.size());
      if (end > begin) out.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return out;
  }
  if (kind == "boolean" && (text == "1" || text == "0")) return text == "1";
  auto parsed = Json::parse(text, nullptr, false);
  return parsed.is_discarded() ? Json(text) : parsed;
}

Status in_range(const char* name, double value, double least, double most) {
  if (value >= least && value <= most) return {};
  const auto shown = [](double number) {
    std::string text = Json(number).dump();
    return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
  };
  return bad_input(name, shown(value), "from " + shown(least) + " to " + shown(most));
}

}  // namespace

Json to_json(const Config& config) {
  Json out = Json::object();
  for (const auto& entry : fields()) out[entry.name] = entry.get(config);
  return out;
}

Status apply_file(const Json& document, const std::string& where, Config& config) {
  if (!document.is_object()) return bad_input(where, document.dump().substr(0, 80), "an object");
  for (const auto& [key, value] : document.items()) {
    if (key == "//") continue;
    const auto found = std::find_if(fields().begin(), fields().end(),
                                    [&name = key](const Field& entry) { return name == entry.name; });
    if (found == fields().end()) return unknown_name(where + "." + key, key, names());
    TRY(set(*found, where + "." + key, value, config));
  }
  return {};
}

Status apply_environment(const std::vector<std::pair<std::string, std::string>>& environment, Config& config) {
  // Read by other parts of the project, or before this: not fields.
  static const std::vector<std::string> others{"TUNERD_CONFIG", "TUNERD_WORKER"};
  for (const auto& [variable, text] : environment) {
    std::string name;
    if (variable == "SOL_TARGET")
      name = "sol_target";
    else if (variable.rfind("TUNERD_", 0) == 0 && std::find(others.begin(), others.end(), variable) == others.end())
      name = variable.substr(7);
    else
      continue;
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto found =
        std::find_if(fields().begin(), fields().end(), [&](const Field& entry) { return name == entry.name; });
    if (found == fields().end()) return unknown_name("$" + variable, name, names());
    TRY(set(*found, "$" + variable, converted(*found, text), config));
  }
  return {};
}

Status check(const Config& config) {
  TRY(in_range("device", config.device, 0, 1023));
  TRY(in_range("workers", static_cast<double>(config.workers), 0, 1024));
  TRY(check_budget(Budget{config.budget_variants, config.budget_seconds, config.sol_target, config.patience}));
  TRY(in_range("compile_deadline_s", config.compile_deadline_s, 0.1, 3600));
  TRY(in_range("measure_deadline_s", config.measure_deadline_s, 0.1, 3600));
  TRY(in_range("launch_deadline_s", config.launch_deadline_s, 0.1, 3600));
  TRY(in_range("max_clients", static_cast<double>(config.max_clients), 1, 100'000));
  TRY(in_range("queue_limit", static_cast<double>(config.queue_limit), 1, 10'000'000));
  TRY(make_strategy(config.strategy, {}));
  const std::vector<std::string> levels{"trace", "debug", "info", "warn", "error"};
  if (std::find(levels.begin(), levels.end(), config.log_level) == levels.end())
    return unknown_name("log_level", config.log_level, levels);
  if (config.socket.empty()) return bad_input("socket", "", "a path");
  if (config.cache.empty()) return bad_input("cache", "", "a folder");
  if (config.templates.empty()) return bad_input("templates", "[]", "at least one folder");
  if (!config.offline.empty() && !config.replay.empty())
    return bad_input("replay", config.replay, "nothing: offline is set, and only one of the two can be");
  return {};
}

Result<CommandLine> read_command_line(int argc, char** argv) {
  CommandLine out;
  Config& config = out.config;
  config.socket = default_socket();
  config.cache = default_cache_folder();
  config.templates = default_template_folders();
  config.devices = default_devices_folder();

  CLI::App app{"tunerd serves the best known CUDA kernel for an op and shape, and tunes behind the answer."};
  app.set_version_flag("--version", std::string("tunerd ") + TUNERD_VERSION);
  std::string file;
  app.add_option("--config", file, "Configuration file (JSON)")->envname("TUNERD_CONFIG");
  app.add_flag("--check-config", out.check_only, "Print the effective configuration and exit");
  Json flags = Json::object();  // applied last, over file and environment
  std::vector<std::string> more_templates;
  app.add_option("--templates", more_templates, "A further template folder; may be repeated");
  const auto text = [&](const char* flag, const char* name, const char* help) {
    app.add_option_function<std::string>(
        flag, [&flags, name](const std::string& value) { flags[name] = value; }, help);
  };
  const auto number = [&](const char* flag, const char* name, const char* help) {
    app.add_option_function<std::string>(
        flag,
        [&flags, name](const std::string& value) {
          auto parsed = Json::parse(value, nullptr, false);
          flags[name] = parsed.is_number() ? parsed : Json(value);
        },
        help);
  };
  const auto flag = [&](const char* spelled, const char* name, bool value, const char* help) {
    app.add_flag_callback(
        spelled, [&flags, name, value] { flags[name] = value; }, help);
  };
  text("--socket", "socket", "Unix socket to serve on");
  text("--cache", "cache", "Folder of the tuning cache");
  text("--base", "base", "A read-only cache under the writable one");
  flag("--read-only", "read_only", true, "Serve --cache as it is, write nothing");
  text("--devices", "devices", "Folder of device peaks");
  number("--device", "device", "CUDA device to measure on");
  text("--offline", "offline", "Serve without a GPU for this architecture (sm_90a) or device (h200-sxm)");
  text("--replay", "replay", "Measure from a recording (tests)");
  number("--workers", "workers", "Compile workers; 0: one a core");
  text("--strategy", "strategy", "Search strategy: learned, model, random, exhaustive");
  number("--sol-target", "sol_target", "Stop tuning a problem at this SOL fraction");
  number("--budget-variants", "budget_variants", "Measure at most so many variants a problem");
  number("--budget-seconds", "budget_seconds", "Tune a problem at most so long");
  number("--patience", "patience", "Stop after so many measurements without a gain");
  flag("--no-tune", "tune", false, "Do not tune in the background");
  number("--compile-deadline-s", "compile_deadline_s", "Longest compile");
  number("--measure-deadline-s", "measure_deadline_s", "Longest measurement of one variant");
  number("--launch-deadline-s", "launch_deadline_s", "Longest single launch while measuring");
  number("--max-clients", "max_clients", "Most connections at once");
  number("--queue-limit", "queue_limit", "Most problems waiting to be tuned");
  text("--log-level", "log_level", "trace, debug, info, warn or error");
  // A flag given twice: the later one holds, so that a script can append to what it was given.
  for (auto* option : app.get_options())
    if (option->get_name() != "--templates") option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    app.exit(asked);
    out.exit_now = true;
    return out;
  } catch (const CLI::ParseError& error) {
    std::vector<std::string> known;
    for (const auto* option : app.get_options())
      for (const auto& name : option->get_lnames()) known.push_back("--" + name);
    std::string wrong;
    for (int i = 1; i < argc && wrong.empty(); ++i)
      if (const std::string word = argv[i];
          word.rfind("--", 0) == 0 &&
          std::find(known.begin(), known.end(), word.substr(0, word.find('='))) == known.end())
        wrong = word;
    if (!wrong.empty()) return unknown_name("flag", wrong, known);
    return bad_input("command line", error.what(), "flags as tunerd --help lists them");
  }
  if (!file.empty()) {
    TRY_ASSIGN(const Json document, read_json_file(file));
    TRY(apply_file(document, file, config));
  }
  std::vector<std::pair<std::string, std::string>> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string pair = *entry;
    if (const auto equals = pair.find('='); equals != std::string::npos)
      environment.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
  }
  TRY(apply_environment(environment, config));
  TRY(apply_file(flags, "flags", config));
  for (const auto& folder : more_templates) config.templates.emplace_back(folder);
  TRY(check(config));
  return out;
}

}  // namespace tunerd::daemon
