#include <array>
#include <chrono>
#include <ctime>

#include "store_impl.h"

namespace tunerd::cache {

std::string utc_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::time_t seconds = milliseconds / 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 40> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::string fraction = std::to_string(milliseconds % 1000);
  fraction.insert(0, 3 - fraction.size(), '0');
  return std::string(text.data(), size) + "." + fraction + "Z";
}

std::string dump_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Result<Json> parse_text(std::string_view text, const std::string& what) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return fail(Code::corrupt, "The stored " + what + " is not JSON.");
  return json;
}

}  // namespace tunerd::cache
