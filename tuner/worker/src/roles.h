// The two roles of tuner-worker: each says hello, then answers jobs until its socket closes. Return the exit code.
#pragma once

#include <cstdint>
#include <string>

#include "model/result.h"

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

// The exit code for what receiving gave: 0 when the parent closed the socket, else 1, with the reason on stderr.
int ended(const Error& error);

int run_compile(const Options& options);
int run_measure(const Options& options);

}  // namespace tunerd::worker
