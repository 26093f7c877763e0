// Replies that are ready to be sent again. A question asked in the same bytes, its id apart, has the same answer for as
// long as the winner it names stays: so nothing is decoded, looked up or encoded. Only exact answers are kept: making
// any other also queues tuning.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "memfd.h"

namespace tunerd::daemon {

class Answers {
 public:
  struct Ready {
    std::string frame;  // header and body, with an id of eight bytes
    std::size_t id_at = 0;
    std::shared_ptr<const SealedFile> file;
    std::string problem;  // its key
  };

  // The body of a request, without the bytes of its id.
  struct Question {
    std::string_view before, after;
  };

  const Ready* find(const Question& question) const;
  void put(const Question& question, Ready ready);
  void forget(const std::string& problem);  // its winner has changed
  void clear();
  std::size_t size() const { return ready_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const Question& question) const;
    std::size_t operator()(const std::string& whole) const { return (*this)(Question{whole, {}}); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const std::string& a, const std::string& b) const { return a == b; }
    bool operator()(const Question& a, const std::string& b) const;
    bool operator()(const std::string& a, const Question& b) const { return (*this)(b, a); }
  };
  std::unordered_map<std::string, Ready, Hash, Equal> ready_;
  std::deque<std::string> order_;  // oldest first; may name what is gone
};

// The bytes of such a reply for this request.
std::string with_id(const Answers::Ready& ready, std::uint64_t id);

}  // namespace tunerd::daemon
