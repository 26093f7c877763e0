// tuner-worker --role compile|measure [--fd 3] [--device N] [--device-kind cuda|replay] [--recording FILE]
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "model/result.h"
#include "roles.h"

namespace {

using namespace tunerd;
using worker::Options;

constexpr int kUsage = 2;
constexpr double kMostMib = 1 << 24, kMostSeconds = 3600, kMostDevices = 1024, kMostFd = 1 << 20;

int usage(const std::string& why) {
  std::fprintf(stderr,
               "tuner-worker: %s\nusage: tuner-worker --role compile|measure [--fd N] [--device N] "
               "[--device-kind cuda|replay] [--recording FILE] [--max-rss-mib N] [--launch-deadline-s S]\n"
               "It is started by tunerd, with a socket on that descriptor.\n",
               why.c_str());
  return kUsage;
}

Result<double> number(const std::string& flag, const char* text, double least, double most, bool whole) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end != text && *end == '\0' && value >= least && value <= most && (!whole || value == std::floor(value)))
    return value;
  char range[80];
  std::snprintf(range, sizeof range, "%s from %.9g to %.9g", whole ? "a whole number" : "a number", least, most);
  return bad_input(flag, text, range);
}

Status parse(int argc, char** argv, Options& options) {
  struct Number {
    double least, most;
    bool whole;
    void (*set)(Options&, double);
  };
  const std::map<std::string, std::string Options::*> texts{
      {"--role", &Options::role}, {"--device-kind", &Options::device_kind}, {"--recording", &Options::recording}};
  const std::map<std::string, Number> numbers{
      {"--fd", {0, kMostFd, true, [](Options& o, double v) { o.fd = static_cast<int>(v); }}},
      {"--device", {0, kMostDevices, true, [](Options& o, double v) { o.device = static_cast<int>(v); }}},
      {"--max-rss-mib",
       {0, kMostMib, true, [](Options& o, double v) { o.max_rss_mib = static_cast<std::int64_t>(v); }}},
      {"--launch-deadline-s", {0.001, kMostSeconds, false, [](Options& o, double v) { o.launch_deadline_s = v; }}}};
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    const auto text = texts.find(flag);
    const auto numeric = numbers.find(flag);
    if (text == texts.end() && numeric == numbers.end()) {
      std::vector<std::string> known;
      for (const auto& [name, member] : texts) known.push_back(name);
      for (const auto& [name, rule] : numbers) known.push_back(name);
      return unknown_name("flag", flag, known);
    }
    if (i + 1 >= argc) return bad_input(flag, "nothing", "a value");
    if (text != texts.end()) {
      options.*(text->second) = argv[i + 1];
    } else {
      const Number& rule = numeric->second;
      TRY_ASSIGN(const double value, number(flag, argv[i + 1], rule.least, rule.most, rule.whole));
      rule.set(options, value);
    }
  }
  if (options.role != "compile" && options.role != "measure")
    return unknown_name("--role", options.role, {"compile", "measure"});
  return {};
}

}  // namespace

namespace tunerd::worker {

int ended(const Error& error) {
  if (error.code == Code::io) return 0;
  std::fprintf(stderr, "tuner-worker: %s\n", error.text().c_str());
  return 1;
}

}  // namespace tunerd::worker

int main(int argc, char** argv) {
  Options options;
  if (auto parsed = parse(argc, argv, options); !parsed) return usage(parsed.error().text());
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGPIPE, SIG_IGN);
  // A core of a CUDA process maps the device: gigabytes, written while the parent waits for the end.
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  return options.role == "compile" ? worker::run_compile(options) : worker::run_measure(options);
}
