// libtuner.so as an application links it: only tuner_* leaves it, each with its version.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdio>
#include <memory>
#include <sstream>

#include "fake_daemon.h"
#include "tuner.hpp"

using namespace tunerd;

TEST_CASE("the shared library serves a get, an upgrade and a refused launch") {
  FakeDaemon daemon;
  const tuner::Client client(daemon.path());
  const tuner::Kernel kernel = client.get("gemm", {{"m", 64}, {"n", 1024}, {"k", 1024}});
  CHECK(kernel.info().generation == 3);
  client.subscribe();
  daemon.upgrade("second cubin", "sample_gemm{bm=64,bn=64}");
  Json answer = Json::parse(kernel.info().json);
  answer["generation"] = 4;
  daemon.push({{"id", 0}, {"type", "upgrade"}, {"answer", answer}});
  CHECK(eventually([&] { return kernel.info().generation == 4; }));
  CHECK_THROWS_WITH_AS(kernel.launch(nullptr, {{"x", 0x1000}, {"w", 0x2000}}), doctest::Contains("tensor y"),
                       tuner::Error);
}

TEST_CASE("nothing but tuner_* with its version leaves the shared library") {
  Dl_info info{};
  REQUIRE(::dladdr(reinterpret_cast<void*>(&tuner_connect), &info) != 0);
  CHECK(std::string(info.dli_fname).find("libtuner.so") != std::string::npos);
  const std::string command = std::string("nm -D --defined-only --with-symbol-versions '") + info.dli_fname + "'";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), &::pclose);
  REQUIRE(pipe);
  std::string text;
  char buffer[4096];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, pipe.get())) text.append(buffer, got);
  std::istringstream lines(text);
  int exported = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string name = line.substr(line.rfind(' ') + 1);
    if (name.rfind("TUNER_", 0) == 0) continue;  // the version itself
    CHECK_MESSAGE(name.rfind("tuner_", 0) == 0, name);
    CHECK_MESSAGE(name.find("@@TUNER_0.1") != std::string::npos, name);
    ++exported;
  }
  CHECK(exported == 12);
}
