#include "harness/daemon.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "harness/folder.h"

namespace tunerd::test {
namespace {

namespace fs = std::filesystem;

constexpr auto kStartDeadline = std::chrono::seconds(90);

// Fields of /proc/PID/stat from the third on: the name before them may hold anything.
std::vector<std::string> stat_fields(pid_t pid) {
  const std::string text = read_text("/proc/" + std::to_string(pid) + "/stat");
  const auto end = text.rfind(')');
  std::vector<std::string> out;
  if (end == std::string::npos) return out;
  std::istringstream rest(text.substr(end + 1));
  for (std::string word; rest >> word;) out.push_back(word);
  return out;
}

}  // namespace

fs::path Daemon::binary() { return fs::path(TUNERD_BINARY_DIR) / "bin" / "tunerd"; }

std::vector<std::string> Daemon::flags(const fs::path& home, const DaemonOptions& options) {
  std::vector<std::string> words{"--socket", (home / "run" / "tunerd.sock").string(), "--cache",
                                 (home / "cache").string()};
  // A flag may be given once.
  if (std::find(options.flags.begin(), options.flags.end(), "--workers") == options.flags.end())
    words.insert(words.end(), {"--workers", "2"});
  if (!options.offline.empty()) words.insert(words.end(), {"--offline", options.offline});
  words.insert(words.end(), options.flags.begin(), options.flags.end());
  return words;
}

std::map<std::string, std::string> Daemon::environment(const DaemonOptions& options) {
  const fs::path source = TUNERD_SOURCE_DIR;
  std::map<std::string, std::string> out{{"TUNERD_DEVICES", (source / "config" / "devices").string()}};
  std::string& templates = out["TUNERD_TEMPLATES"];
  for (const auto& folder : options.templates) templates += (templates.empty() ? "" : ":") + folder.string();
  if (templates.empty()) templates = (source / "templates").string();
  for (const auto& [name, value] : options.environment) out[name] = value;
  return out;
}

Daemon::Daemon(const fs::path& home, DaemonOptions options) : home_(home) {
  program_ = Program(binary(), flags(home, options), environment(options), home / "tunerd.log", options.limits);
  const auto until = std::chrono::steady_clock::now() + kStartDeadline;
  while (true) {
    if (auto greeted = Client::greet(socket())) return;
    if (program_.wait(std::chrono::milliseconds(20)) || std::chrono::steady_clock::now() > until) {
      throw std::runtime_error("tunerd did not start:\n" + log());
    }
  }
}

Client Daemon::client() const {
  auto greeted = Client::greet(socket());
  if (!greeted) throw std::runtime_error("tunerd refused: " + greeted.error().text() + "\n" + log());
  return std::move(*greeted);
}

std::string Daemon::log() const { return read_text(home_ / "tunerd.log"); }

Json Daemon::status() const {
  Client asking = client();
  auto reply = asking.call("status");
  if (!reply) throw std::runtime_error("no status: " + reply.error().text());
  return std::move(reply->fields);
}

Ended Daemon::stop(std::chrono::milliseconds at_most) {
  program_.signal(SIGTERM);
  return program_.wait(at_most);
}

void Daemon::kill() {
  program_.signal(SIGKILL);
  program_.wait(std::chrono::seconds(10));
}

std::vector<pid_t> Daemon::children() const {
  std::vector<pid_t> out;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto fields = stat_fields(static_cast<pid_t>(std::stol(name)));
    if (fields.size() > 1 && fields[0] != "Z" && fields[1] == std::to_string(pid()))
      out.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return out;
}

double Daemon::cpu_seconds() const {
  const auto fields = stat_fields(pid());
  if (fields.size() < 13) throw std::runtime_error("the daemon has ended");
  return (std::stod(fields[11]) + std::stod(fields[12])) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

std::int64_t Daemon::resident_bytes() const {
  const auto fields = stat_fields(pid());
  if (fields.size() < 22) throw std::runtime_error("the daemon has ended");
  return std::stoll(fields[21]) * ::sysconf(_SC_PAGESIZE);
}

bool is_running(pid_t pid) {
  const auto fields = stat_fields(pid);
  return !fields.empty() && fields[0] != "Z";
}

}  // namespace tunerd::test
