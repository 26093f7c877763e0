// How far a long command is: a bar with an ETA on a terminal, plain lines otherwise. Always on stderr.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace tunerd::ctl {

class Progress {
 public:
  explicit Progress(std::size_t total);
  Progress(std::size_t total, bool terminal) : total_(total), terminal_(terminal) {}
  ~Progress();  // leaves the cursor on a fresh line
  // One more is done. `line` is printed only when stderr is no terminal.
  void step(const std::string& line);
  // What the bar looks like now, without control characters.
  std::string bar(double elapsed_s) const;

 private:
  std::size_t total_;
  bool terminal_;
  std::size_t done_ = 0;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// From now on SIGINT and SIGTERM only set the flag, so that a command can stop between two steps.
void catch_interrupts();
bool interrupted();

}  // namespace tunerd::ctl
