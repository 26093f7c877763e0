// Finds a body's id without decoding the body.
#include "wire/frame.h"

namespace tunerd::wire {
namespace {

// Walks over CBOR data items of definite length; anything else ends the walk.
class Walker {
 public:
  explicit Walker(std::string_view body) : body_(body) {}
  bool ok() const { return ok_; }
  std::size_t at() const { return at_; }

  // The head of the next item: its major type, and its argument.
  std::uint8_t head(std::uint64_t& argument) {
    argument = 0;
    if (at_ >= body_.size()) return fail();
    const auto first = static_cast<std::uint8_t>(body_[at_++]);
    const std::uint8_t low = first & 0x1F;
    if (low < 24) {
      argument = low;
      return first >> 5;
    }
    if (low > 27) return fail();
    const std::size_t bytes = std::size_t{1} << (low - 24);
    if (body_.size() - at_ < bytes) return fail();
    for (std::size_t i = 0; i < bytes; ++i) argument = argument << 8 | static_cast<std::uint8_t>(body_[at_++]);
    return first >> 5;
  }

  std::string_view text(std::uint64_t size) {
    if (!ok_ || size > body_.size() - at_) {
      fail();
      return {};
    }
    at_ += size;
    return body_.substr(at_ - size, size);
  }

  // Past one whole item; every item has a head of at least a byte, so the count of those still to come cannot run away.
  void skip() {
    for (std::uint64_t items = 1; ok_ && items > 0; --items) {
      std::uint64_t argument = 0;
      const std::uint8_t major = head(argument);
      if (!ok_) return;
      if (major == 2 || major == 3) text(argument);
      if (major < 4 || major == 7) continue;
      if (major == 6 || argument > body_.size()) {
        fail();
        return;
      }
      items += major == 5 ? 2 * argument : argument;
    }
  }

 private:
  std::uint8_t fail() {
    ok_ = false;
    return 0xFF;
  }
  std::string_view body_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace

std::optional<IdSpan> find_id(std::string_view body) {
  Walker walker(body);
  std::uint64_t entries = 0;
  if (walker.head(entries) != 5) return {};
  std::optional<IdSpan> found;
  for (; entries > 0 && walker.ok(); --entries) {
    std::uint64_t size = 0;
    if (walker.head(size) != 3) return {};
    const std::string_view key = walker.text(size);
    if (key != "id") {
      walker.skip();
      continue;
    }
    if (found) return {};
    const std::size_t begin = walker.at();
    std::uint64_t id = 0;
    if (walker.head(id) != 0) return {};
    found = IdSpan{begin, walker.at() - begin, id};
  }
  if (!walker.ok() || walker.at() != body.size()) return {};
  return found;
}

}  // namespace tunerd::wire
