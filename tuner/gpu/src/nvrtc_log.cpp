#include <cctype>
#include <charconv>

#include "gpu/nvrtc.h"

namespace tunerd::gpu {
namespace {

// The integer right before `word` in `line`, or 0.
std::int64_t number_before(std::string_view line, std::string_view word) {
  const auto at = line.find(word);
  if (at == std::string_view::npos) return 0;
  std::size_t end = at;
  while (end > 0 && line[end - 1] == ' ') --end;
  std::size_t begin = end;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(line[begin - 1]))) --begin;
  std::int64_t value = 0;
  std::from_chars(line.data() + begin, line.data() + end, value);
  return value;
}

// Whether a line that opens a function's section opens the one of `entry`, and not of another whose name holds it.
bool opens(std::string_view line, std::string_view entry) {
  static constexpr std::string_view kEntry = "Compiling entry function '", kProperties = "Function properties for ";
  if (const auto at = line.find(kEntry); at != std::string_view::npos) {
    const auto rest = line.substr(at + kEntry.size());
    return rest.substr(0, rest.find('\'')) == entry;
  }
  const auto rest = line.substr(line.find(kProperties) + kProperties.size());
  return rest.substr(0, rest.find_last_not_of(" \r") + 1) == entry;
}

bool word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// "C7508" in the line, or empty. C7519 only says that arrives were injected: noted in the log, not a reason to reject.
std::string rejected_code(std::string_view line) {
  for (std::size_t at = line.find("C75"); at != std::string_view::npos; at = line.find("C75", at + 1)) {
    const auto code = line.substr(at, 5);
    // Within a longer word it is part of somebody's name.
    if ((at > 0 && word_character(line[at - 1])) || (at + 5 < line.size() && word_character(line[at + 5]))) continue;
    const bool digits = code.size() == 5 && std::isdigit(static_cast<unsigned char>(code[3])) &&
                        std::isdigit(static_cast<unsigned char>(code[4]));
    if (digits && code != "C7519") return std::string(code);
  }
  return {};
}

}  // namespace

Resources read_log(const std::string& log, const std::string& entry) {
  Resources out;
  bool ours = false;  // between "Compiling entry function '<entry>'" and the next function
  std::string_view rest = log;
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    if (line.find("Compiling entry function") != std::string_view::npos ||
        line.find("Function properties for") != std::string_view::npos)
      ours = opens(line, entry);
    if (ours && line.find("bytes stack frame") != std::string_view::npos) {
      out.stack_bytes = number_before(line, "bytes stack frame");
      out.spill_bytes = number_before(line, "bytes spill stores") + number_before(line, "bytes spill loads");
    }
    if (ours && line.find("Used ") != std::string_view::npos && line.find(" registers") != std::string_view::npos) {
      out.registers = number_before(line, "registers");
      out.static_smem_bytes = number_before(line, "bytes smem");
    }
    if (const auto code = rejected_code(line); !code.empty() && out.rejected.empty())
      out.rejected = code + ": " + std::string(line.substr(0, 200));
  }
  if (out.rejected.empty() && out.spill_bytes > 0)
    out.rejected = "spills " + std::to_string(out.spill_bytes) + " bytes of registers to memory";
  return out;
}

}  // namespace tunerd::gpu
