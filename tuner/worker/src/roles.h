// The two roles of tuner-worker: each says hello, then answers jobs until its socket closes. Return the exit code.
#pragma once

#include <cstdint>
#include <string>

namespace tunerd::worker {

struct Options {
  std::string role;
  int fd = 3;
  int device = 0;
  std::string device_kind = "cuda";  // cuda | replay
  std::string recording;             // replay: the file
  std::int64_t max_rss_mib = 1024;   // compile: end after a job that left more than this resident
  double launch_deadline_s = 10;     // measure: a kernel that runs longer never ends
};

int run_compile(const Options& options);
int run_measure(const Options& options);

}  // namespace tunerd::worker
