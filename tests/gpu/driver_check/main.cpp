// The measure worker's parts on a real GPU, without the daemon: fills, checks, gates, times, faults.
// Run by hand there: build/tests/gpu_selftest [doctest's flags]. Without a GPU it says so and ends with 0.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "gpu/driver.h"

int main(int argc, char** argv) {
  if (const auto device = tunerd::gpu::Device::open(0, 10); !device) {
    std::printf("no GPU: %s\n", device.error().text().c_str());
    return 0;
  }
  return doctest::Context(argc, argv).run();
}
