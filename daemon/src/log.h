// Logging, behind a few functions so that one source alone pays for the library's headers.
#pragma once

#include <string>

namespace tunerd::daemon {

void set_log_level(const std::string& level);  // trace | debug | info | warn | error
void log_debug(const std::string& text);
void log_info(const std::string& text);
void log_warn(const std::string& text);
void log_error(const std::string& text);

}  // namespace tunerd::daemon
