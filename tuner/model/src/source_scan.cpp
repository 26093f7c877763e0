#include "source_scan.h"

#include <cctype>

namespace tunerd {
namespace {

// One logical line: continuations joined, comments replaced by a space, string contents kept.
struct LogicalLine {
  std::string text;
  int number = 0;
};

class LineReader {
 public:
  explicit LineReader(std::string_view text) : text_(text) {}

  bool next(LogicalLine& out) {
    if (at_ >= text_.size()) return false;
    out.text.clear();
    out.number = line_;
    while (at_ < text_.size()) {
      if (skip_continuation()) continue;
      const char c = text_[at_];
      if (c == '\n') {
        take();
        return true;
      }
      if (c == '/' && peek(1) == '/') {
        skip_line_comment();
      } else if (c == '/' && peek(1) == '*') {
        skip_block_comment();
        out.text += ' ';
      } else if (c == '"' && ends_raw_prefix(out.text)) {
        copy_raw_string(out.text);
      } else if (c == '"' || (c == '\'' && !in_number(out.text))) {
        copy_quoted(c, out.text);
      } else {
        out.text += take();
      }
    }
    return true;
  }

 private:
  char peek(std::size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  char take() {
    const char c = text_[at_++];
    if (c == '\n') ++line_;
    return c;
  }

  bool skip_continuation() {
    if (text_[at_] != '\\') return false;
    const std::size_t newline = peek(1) == '\r' ? 2 : 1;
    if (peek(newline) != '\n') return false;
    for (std::size_t i = 0; i <= newline; ++i) take();
    return true;
  }

  void skip_line_comment() {
    while (at_ < text_.size() && text_[at_] != '\n') {
      if (!skip_continuation()) take();
    }
  }

  void skip_block_comment() {
    at_ += 2;
    while (at_ < text_.size() && !(text_[at_] == '*' && peek(1) == '/')) take();
    at_ = at_ + 2 > text_.size() ? text_.size() : at_ + 2;
  }

  // 1'000'000 is no character literal.
  static bool in_number(const std::string& before) {
    return !before.empty() && std::isalnum(static_cast<unsigned char>(before.back())) != 0;
  }

  static bool ends_raw_prefix(const std::string& before) { return !before.empty() && before.back() == 'R'; }

  void copy_raw_string(std::string& out) {
    const std::size_t open = text_.find('(', at_);
    constexpr std::size_t kLongestDelimiter = 16;
    if (open == std::string_view::npos || open - at_ - 1 > kLongestDelimiter) {
      copy_quoted('"', out);
      return;
    }
    const std::string close = ")" + std::string(text_.substr(at_ + 1, open - at_ - 1)) + "\"";
    const std::size_t found = text_.find(close, open);
    const std::size_t end = found == std::string_view::npos ? text_.size() : found + close.size();
    out += "\"\"";  // what a raw string holds is never a directive
    while (at_ < end) take();
  }

  // A literal ends at its line's end at the latest, so that one stray quote does not hide the rest of the file.
  void copy_quoted(char quote, std::string& out) {
    out += take();
    while (at_ < text_.size() && text_[at_] != '\n') {
      if (skip_continuation()) continue;
      const char c = take();
      out += c;
      if (c == quote) return;
      if (c == '\\' && at_ < text_.size() && text_[at_] != '\n') out += take();
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  return text;
}

std::string_view word_of(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && (std::isalnum(static_cast<unsigned char>(text[length])) != 0 || text[length] == '_')) {
    ++length;
  }
  return text.substr(0, length);
}

}  // namespace

Result<std::vector<IncludeLine>> scan_includes(std::string_view text, const std::string& file) {
  std::vector<IncludeLine> includes;
  LineReader reader(text);
  LogicalLine line;
  while (reader.next(line)) {
    std::string_view rest = trimmed(line.text);
    const std::string where = file + ":" + std::to_string(line.number);
    const std::string_view first = word_of(rest);
    if (first == "import" && rest.size() > first.size() + 1 && rest.find_first_of("\"<", first.size()) == 7) {
      return bad_input(where, std::string(rest), "#include \"…\" of a header in the template folders");
    }
    if (rest.substr(0, 1) == "#") {
      rest.remove_prefix(1);
    } else if (rest.substr(0, 2) == "%:") {  // the digraph of #
      rest.remove_prefix(2);
    } else {
      continue;
    }
    rest = trimmed(rest);
    const std::string_view directive = word_of(rest);
    if (directive == "include_next" || directive == "import" || directive == "embed") {
      return bad_input(where, "#" + std::string(rest), "#include \"…\" of a header in the template folders");
    }
    if (directive != "include") continue;
    const std::string_view target = trimmed(rest.substr(directive.size()));
    const std::size_t close = target.size() > 1 ? target.find('"', 1) : std::string_view::npos;
    if (target.substr(0, 1) != "\"" || close == std::string_view::npos || close == 1) {
      return bad_input(where, "#include " + std::string(target),
                       "a quoted name: templates include only headers of the template folders");
    }
    includes.push_back({std::string(target.substr(1, close - 1)), line.number});
  }
  return includes;
}

}  // namespace tunerd
