// tuner-worker --role compile|measure [--fd 3] [--device N] [--device-kind cuda|replay] [--recording FILE]
#include <signal.h>
#include <sys/prctl.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "model/result.h"
#include "roles.h"

namespace {

using tunerd::worker::Options;

constexpr int kUsage = 2;

int usage(const std::string& why) {
  std::fprintf(
      stderr,
      "tuner-worker: %s\nusage: tuner-worker --role compile|measure [--fd N] [--device N] [--device-kind cuda|replay] "
      "[--recording FILE] "
      "[--max-rss-mib N] [--launch-deadline-s S]\nIt is started by tunerd, with a socket on that descriptor.\n",
      why.c_str());
  return kUsage;
}

bool number(const char* text, double& out) {
  char* end = nullptr;
  out = std::strtod(text, &end);
  return end != text && *end == '\0' && out >= 0 && out <= 1e9;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const std::map<std::string, std::string*> texts{
      {"--role", &options.role}, {"--device-kind", &options.device_kind}, {"--recording", &options.recording}};
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    if (i + 1 >= argc) return usage(flag + " needs a value");
    double value = 0;
    if (const auto text = texts.find(flag); text != texts.end()) {
      *text->second = argv[i + 1];
      continue;
    }
    if (!number(argv[i + 1], value)) return usage(flag + ": expected a number, got " + argv[i + 1]);
    if (flag == "--fd")
      options.fd = static_cast<int>(value);
    else if (flag == "--device")
      options.device = static_cast<int>(value);
    else if (flag == "--max-rss-mib")
      options.max_rss_mib = static_cast<std::int64_t>(value);
    else if (flag == "--launch-deadline-s")
      options.launch_deadline_s = value;
    else
      return usage("unknown flag " + flag);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGPIPE, SIG_IGN);
  if (options.role == "compile") return tunerd::worker::run_compile(options);
  if (options.role == "measure") return tunerd::worker::run_measure(options);
  return usage("--role: expected compile or measure, got '" + options.role + "'");
}
