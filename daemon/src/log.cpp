#include "log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace tunerd::daemon {
namespace {

spdlog::logger& logger() {
  static const auto instance = [] {
    auto made = spdlog::stderr_logger_st("tunerd");
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
    return made;
  }();
  return *instance;
}

}  // namespace

void set_log_level(const std::string& level) { logger().set_level(spdlog::level::from_str(level)); }
void log_debug(const std::string& text) { logger().debug("{}", text); }
void log_info(const std::string& text) { logger().info("{}", text); }
void log_warn(const std::string& text) { logger().warn("{}", text); }
void log_error(const std::string& text) { logger().error("{}", text); }

}  // namespace tunerd::daemon
