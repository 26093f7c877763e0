#include "ctl/progress.h"

#include <unistd.h>

#include <csignal>
#include <iostream>

#include "ctl/output.h"

namespace tunerd::ctl {
namespace {

constexpr std::size_t kBarWidth = 30;

volatile std::sig_atomic_t signal_seen = 0;

extern "C" void note_signal(int number) { signal_seen = number; }

}  // namespace

Progress::Progress(std::size_t total) : Progress(total, ::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (drawn_) std::cerr << '\n';
}

std::string Progress::bar(double elapsed_s) const {
  const std::size_t filled = total_ == 0 ? kBarWidth : done_ * kBarWidth / total_;
  std::string text = "[" + std::string(filled, '#') + std::string(kBarWidth - filled, '.') + "] " +
                     std::to_string(done_) + "/" + std::to_string(total_) + "  " + format_seconds(elapsed_s);
  if (done_ > 0 && done_ < total_)
    text += "  ETA " + format_seconds(elapsed_s / double(done_) * double(total_ - done_));
  return text;
}

void Progress::step(const std::string& line) {
  ++done_;
  if (!terminal_) {
    std::cerr << "[" << done_ << "/" << total_ << "] " << line << '\n';
    return;
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  std::cerr << "\r\x1b[K" << bar(elapsed.count()) << std::flush;
  drawn_ = true;
}

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = note_signal;  // without SA_RESTART, so that a wait ends
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return signal_seen != 0; }

}  // namespace tunerd::ctl
