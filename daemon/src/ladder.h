// Which kernel answers a request: exact, near, default, fallback. Validity is checked at every serve.
#pragma once

#include "core.h"

namespace tunerd::daemon {

class Tuner;

struct Served {
  wire::GetAnswer answer;
  std::shared_ptr<const SealedFile> file;  // null when no cubin was asked for
};

class Ladder {
 public:
  Ladder(Core& core, Tuner& tuner) : core_(core), tuner_(tuner) {}

  Task<Result<Served>> get(const wire::GetRequest& request);
  // What would be served now without compiling, for reports and pushes; Code::not_found when nothing is ready.
  Task<Result<Served>> ready(const OpEntry& entry, const Problem& problem, bool want_cubin);

 private:
  struct Choice {
    Kernel kernel;
    wire::Quality quality = wire::Quality::exact;
    const cache::Winner* winner = nullptr;  // exact only: its numbers are of this problem
    std::string note;
  };
  Task<Result<Choice>> exact(const OpEntry& entry, const Problem& problem, const std::string& key, bool may_compile,
                             Clock::time_point until);
  Task<Result<Choice>> near(const OpEntry& entry, const Problem& problem, const std::string& key);
  Task<Result<Choice>> ranked(const OpEntry& entry, const Problem& problem, const std::string& key, bool may_compile,
                              Clock::time_point until);
  Task<Result<Choice>> fallback(const OpEntry& entry, const Problem& problem, bool may_compile,
                                Clock::time_point until);
  Result<Served> answer(const OpEntry& entry, const Problem& problem, const std::string& key, const Choice& choice,
                        bool want_cubin);
  Error cached_miss(const Problem& problem, const std::string& key);

  Core& core_;
  Tuner& tuner_;
};

}  // namespace tunerd::daemon
