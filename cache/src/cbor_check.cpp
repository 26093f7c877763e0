#include "cbor_check.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace tunerd::cache {
namespace {

enum : unsigned { kUnsigned, kNegative, kBytes, kText, kArray, kMap, kTag, kSimple };

struct Head {
  unsigned major = 0;
  bool indefinite = false;
  std::uint64_t value = 0;
};

Unexpected broken(std::size_t at, const char* why) {
  return fail(Code::corrupt, "The body is not CBOR: " + std::string(why) + " at byte " + std::to_string(at) + ".");
}

// A head and its argument; `at` moves past it.
std::optional<Head> read_head(std::string_view bytes, std::size_t& at) {
  if (at >= bytes.size()) return std::nullopt;
  const unsigned first = static_cast<unsigned char>(bytes[at++]);
  Head head{first >> 5, false, first & 31};
  if (head.value < 24) return head;
  if (head.value == 31) {
    head.indefinite = true;
    return head;
  }
  if (head.value > 27) return std::nullopt;
  const std::size_t width = std::size_t{1} << (head.value - 24);
  if (bytes.size() - at < width) return std::nullopt;
  head.value = 0;
  for (std::size_t i = 0; i < width; ++i) head.value = head.value << 8u | static_cast<unsigned char>(bytes[at++]);
  return head;
}

struct Open {
  bool counted = true;      // else ended by a break
  std::uint64_t left = 0;   // items still to come
  bool whole_pairs = true;  // an indefinite map may only end between pairs
  bool map = false;
};

}  // namespace

Status check_cbor(std::string_view bytes, int max_depth) {
  std::vector<Open> open;
  std::size_t at = 0;
  bool done = false;
  while (!done) {
    const std::size_t start = at;
    const auto head = read_head(bytes, at);
    if (!head) return broken(start, "a bad or missing head");
    bool complete = true;
    if (head->major == kSimple && head->indefinite) {
      if (open.empty() || open.back().counted || !open.back().whole_pairs) return broken(start, "a stray break");
      open.pop_back();
    } else if (head->major == kBytes || head->major == kText) {
      if (head->indefinite) return broken(start, "a string of unknown length");
      if (head->value > bytes.size() - at) return broken(start, "a string longer than the body");
      at += std::size_t(head->value);
    } else if (head->major == kArray || head->major == kMap) {
      if (int(open.size()) >= max_depth) return broken(start, "nesting too deep");
      if (!head->indefinite && head->value > bytes.size() - at) return broken(start, "more items than bytes");
      const std::uint64_t items = head->major == kMap ? head->value * 2 : head->value;
      if (head->indefinite || items > 0) {
        open.push_back({!head->indefinite, items, true, head->major == kMap});
        complete = false;
      }
    } else if (head->major == kTag || head->indefinite) {
      return broken(start, "a tag or an unknown kind");
    }
    // A finished item may finish what it lies in.
    while (complete && !open.empty()) {
      Open& parent = open.back();
      if (!parent.counted) {
        if (parent.map) parent.whole_pairs = !parent.whole_pairs;
        break;
      }
      if (--parent.left > 0) break;
      open.pop_back();
    }
    done = open.empty();
  }
  if (at != bytes.size()) return broken(at, "bytes after the end");
  return {};
}

}  // namespace tunerd::cache
