#include "cbor_scan.h"

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "wire/frame.h"

namespace tunerd::wire {
namespace {

constexpr std::uint64_t kIndefinite = std::numeric_limits<std::uint64_t>::max();
enum Major : std::uint8_t { kUnsigned, kNegative, kBytes, kText, kArray, kMap, kTag, kSimple };

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<std::uint8_t>(text[i]);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    // Continuation count, and the range of the first one: it excludes overlong forms, surrogates and values past
    // 10FFFF.
    std::size_t more = 0;
    std::uint8_t low = 0x80, high = 0xBF;
    if (lead >= 0xC2 && lead <= 0xDF) {
      more = 1;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      more = 2;
      if (lead == 0xE0) low = 0xA0;
      if (lead == 0xED) high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      more = 3;
      if (lead == 0xF0) low = 0x90;
      if (lead == 0xF4) high = 0x8F;
    } else {
      return false;
    }
    if (text.size() - i <= more) return false;
    for (std::size_t k = 1; k <= more; ++k) {
      const auto byte = static_cast<std::uint8_t>(text[i + k]);
      if (byte < low || byte > high) return false;
      low = 0x80;
      high = 0xBF;
    }
    i += more + 1;
  }
  return true;
}

class Scanner {
 public:
  explicit Scanner(std::string_view body) : body_(body) {}

  Status run() {
    if (body_.empty() || (static_cast<std::uint8_t>(body_[0]) >> 5) != kMap) return error(0, "one CBOR map");
    TRY(item());
    while (depth_ > 0) {
      Level& top = levels_[depth_ - 1];
      if (top.items_left == kIndefinite) {
        if (at_ >= body_.size()) return truncated(1);
        if (static_cast<std::uint8_t>(body_[at_]) == 0xFF) {
          if (top.map && !top.key_next) return error(at_, "a value after its key");
          ++at_;
          --depth_;
          continue;
        }
      } else if (top.items_left == 0) {
        --depth_;
        continue;
      } else {
        --top.items_left;
      }
      if (top.map) {
        const bool key = top.key_next;
        top.key_next = !key;
        if (key && at_ < body_.size() && (static_cast<std::uint8_t>(body_[at_]) >> 5) != kText)
          return error(at_, "a text key");
      }
      TRY(item());
    }
    if (at_ != body_.size())
      return fail_with("body has " + std::to_string(body_.size() - at_) + " bytes after its end", std::to_string(at_),
                       "nothing after the map");
    return {};
  }

 private:
  struct Level {
    std::uint64_t items_left = 0;  // keys and values both count
    bool map = false;
    bool key_next = true;
  };

  Status item() {
    const std::size_t start = at_;
    std::uint64_t argument = 0;
    std::uint8_t major = 0;
    TRY(head(major, argument));
    switch (major) {
      case kUnsigned:
        return {};
      case kNegative:
        if (argument > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
          return error(start, "an integer of at least -2^63");
        return {};
      case kBytes:
      case kText:
        return argument == kIndefinite ? chunks(major) : string(major, argument);
      case kArray:
      case kMap:
        return open(start, major == kMap, argument);
      case kTag:
        return error(start, "no tag");
      default:
        return {};  // head() let through only false, true, null and floats
    }
  }

  // Initial byte and its argument. kIndefinite only for strings, arrays and maps.
  Status head(std::uint8_t& major, std::uint64_t& argument) {
    if (at_ >= body_.size()) return truncated(1);
    const std::size_t start = at_;
    const auto initial = static_cast<std::uint8_t>(body_[at_++]);
    major = initial >> 5;
    const std::uint8_t info = initial & 0x1F;
    if (major == kSimple) {
      const std::size_t extra = info == 25 ? 2 : info == 26 ? 4 : info == 27 ? 8 : 0;
      if (extra == 0 && (info < 20 || info > 22)) return error(start, "false, true, null or a float");
      return skip(extra);
    }
    if (info < 24) {
      argument = info;
      return {};
    }
    if (info == 31 && major >= kBytes && major <= kMap) {
      argument = kIndefinite;
      return {};
    }
    if (info > 27) return error(start, "a length of 0, 1, 2, 4 or 8 bytes");
    const std::size_t extra = std::size_t{1} << (info - 24);
    if (body_.size() - at_ < extra) return truncated(extra);
    for (std::size_t i = 0; i < extra; ++i) argument = argument << 8 | static_cast<std::uint8_t>(body_[at_ + i]);
    at_ += extra;
    // 2^64-1 means indefinite here; as a declared length it is past any body anyway.
    if (argument == kIndefinite && major != kUnsigned) return truncated(argument);
    return {};
  }

  Status string(std::uint8_t major, std::uint64_t length) {
    if (length > body_.size() - at_) return truncated(length);
    const std::string_view text = body_.substr(at_, static_cast<std::size_t>(length));
    if (major == kText && !is_utf8(text)) return error(at_, "UTF-8 text");
    at_ += text.size();
    return {};
  }

  Status chunks(std::uint8_t major) {
    while (true) {
      if (at_ >= body_.size()) return truncated(1);
      if (static_cast<std::uint8_t>(body_[at_]) == 0xFF) {
        ++at_;
        return {};
      }
      const std::size_t start = at_;
      std::uint8_t chunk_major = 0;
      std::uint64_t length = 0;
      TRY(head(chunk_major, length));
      if (chunk_major != major || length == kIndefinite) return error(start, "a definite chunk of the same string");
      TRY(string(major, length));
    }
  }

  Status open(std::size_t start, bool map, std::uint64_t count) {
    if (depth_ == levels_.size())
      return fail_with("body nests too deep at byte " + std::to_string(start), "more than " + std::to_string(kMaxDepth),
                       "at most " + std::to_string(kMaxDepth) + " nested arrays and maps", "depth");
    if (count != kIndefinite) {
      // Every item takes at least one byte: a larger count cannot be true, and must not reach the decoder.
      const std::uint64_t left = body_.size() - at_;
      if (count > left || (map && count > left / 2)) return truncated(count);
      if (map) count *= 2;
    }
    levels_[depth_++] = Level{count, map, true};
    return {};
  }

  Status skip(std::size_t bytes) {
    if (body_.size() - at_ < bytes) return truncated(bytes);
    at_ += bytes;
    return {};
  }

  Status truncated(std::uint64_t wanted) const {
    return fail_with("body ends early at byte " + std::to_string(at_),
                     std::to_string(body_.size() - at_) + " bytes left", std::to_string(wanted) + " more", "length");
  }
  Status error(std::size_t offset, const std::string& expected) const {
    std::string value = "nothing";
    if (offset < body_.size()) {
      constexpr char digits[] = "0123456789abcdef";
      const auto byte = static_cast<std::uint8_t>(body_[offset]);
      value = std::string("0x") + digits[byte >> 4] + digits[byte & 15];
    }
    return fail_with("body is not what a message may hold at byte " + std::to_string(offset), value, expected);
  }
  static Status fail_with(std::string message, std::string value, std::string expected, std::string field = "body") {
    return Unexpected(
        Error{Code::corrupt, std::move(message), std::move(field), std::move(value), std::move(expected), {}});
  }

  std::string_view body_;
  std::size_t at_ = 0;
  std::array<Level, kMaxDepth> levels_{};
  std::size_t depth_ = 0;
};

}  // namespace

Status scan_cbor(std::string_view body) { return Scanner(body).run(); }

}  // namespace tunerd::wire
