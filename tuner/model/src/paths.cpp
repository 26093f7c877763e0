#include "model/paths.h"

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace tunerd {
namespace {

namespace fs = std::filesystem;

// An empty variable counts as unset: service managers often export them so.
std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : std::string_view{value};
}

fs::path private_temporary_folder() { return fs::path("/tmp") / ("tunerd-" + std::to_string(::getuid())); }

fs::path data_folder(const char* installed, const char* in_source_tree) {
  std::error_code ignored;
  const fs::path program = executable_folder();
  if (!program.empty()) {
    fs::path shared = program.parent_path() / "share" / "tunerd" / installed;
    if (fs::is_directory(shared, ignored)) return shared;
  }
  return fs::path(TUNERD_SOURCE_DIR) / in_source_tree;
}

}  // namespace

fs::path executable_folder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path{} : program.parent_path();
}

std::vector<fs::path> default_template_folders() {
  std::vector<fs::path> folders;
  std::string_view rest = environment("TUNERD_TEMPLATES");
  while (!rest.empty()) {
    const std::size_t end = rest.find(':');
    if (const std::string_view folder = rest.substr(0, end); !folder.empty()) folders.emplace_back(folder);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  }
  if (folders.empty()) folders.push_back(data_folder("templates", "templates"));
  return folders;
}

fs::path default_devices_folder() {
  if (const std::string_view folder = environment("TUNERD_DEVICES"); !folder.empty()) return fs::path(folder);
  return data_folder("devices", "config/devices");
}

fs::path default_socket() {
  if (const std::string_view path = environment("TUNERD_SOCKET"); !path.empty()) return fs::path(path);
  if (const std::string_view folder = environment("XDG_RUNTIME_DIR"); !folder.empty()) {
    return fs::path(folder) / "tunerd" / "tunerd.sock";
  }
  if (::getuid() == 0) return "/run/tunerd/tunerd.sock";
  return private_temporary_folder() / "tunerd.sock";
}

fs::path default_cache_folder() {
  if (const std::string_view folder = environment("TUNERD_CACHE"); !folder.empty()) return fs::path(folder);
  if (::getuid() == 0) return "/var/cache/tunerd";
  if (const std::string_view folder = environment("XDG_CACHE_HOME"); !folder.empty())
    return fs::path(folder) / "tunerd";
  if (const std::string_view home = environment("HOME"); !home.empty()) return fs::path(home) / ".cache" / "tunerd";
  return private_temporary_folder() / "cache";
}

}  // namespace tunerd
