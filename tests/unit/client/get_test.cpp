#include <doctest/doctest.h>

#include "fake_daemon.h"
#include "tuner.hpp"

using namespace tunerd;

namespace {

const tuner::Dims kDims{{"m", 64}, {"n", 1024}, {"k", 1024}};
const tuner::Attributes kAttributes{{"dtype", "bf16"}, {"epilogue", "none"}};

// The status of a get, and the field its error names.
std::pair<int, std::string> get_error(const tuner::Client& client, const tuner::Dims& dims = kDims,
                                      tuner_wait wait = TUNER_NOW, std::int64_t deadline_ms = 0) {
  try {
    client.get("gemm", dims, kAttributes, wait, deadline_ms);
  } catch (const tuner::Error& error) {
    tuner_error_parts parts{};
    parts.struct_size = sizeof parts;
    tuner_last_error_parts(nullptr, &parts);
    return {error.status(), parts.field};
  }
  return {TUNER_OK, {}};
}

}  // namespace

TEST_CASE("a get brings the kernel, its facts and its cubin") {
  FakeDaemon daemon;
  const tuner::Client client(daemon.path());
  const tuner::Kernel kernel = client.get("gemm", kDims, kAttributes);
  const tuner_kernel_facts facts = kernel.info();
  CHECK(facts.op == std::string("gemm"));
  CHECK(facts.variant == std::string("sample_gemm{bm=32,bn=64}"));
  CHECK(facts.quality == std::string("near"));
  CHECK(facts.source == std::string("measured"));
  CHECK(facts.arch == std::string("sm_90a"));
  CHECK(facts.t_sol_us == 1.25);
  CHECK(facts.time_us == 2.5);
  CHECK(facts.sol_fraction == 0.5);
  CHECK(facts.generation == 3);
  CHECK(std::string(static_cast<const char*>(facts.cubin), facts.cubin_bytes) ==
        "\x7f"
        "ELF first cubin");
  CHECK(Json::parse(facts.json)["launch"]["grid"] == Json{2, 16, 1});
}

TEST_CASE("the request carries the problem, the wait and the deadline") {
  FakeDaemon daemon;
  Json seen;
  daemon.get = [&](const Json& request, int& fd) {
    seen = request;
    return daemon.serve(request, fd);
  };
  const tuner::Client client(daemon.path());
  client.get("gemm", kDims, kAttributes, TUNER_TUNED, 1234);
  CHECK(seen["fields"] == Json{{"m", 64}, {"n", 1024}, {"k", 1024}, {"dtype", "bf16"}, {"epilogue", "none"}});
  CHECK(wire::get_request_from_json(seen));
  CHECK(seen["wait"] == "tuned");
  CHECK(seen["deadline_ms"] == 1234);
}

TEST_CASE("a problem asked for before is answered from memory, in any order of its fields, with the same handle") {
  FakeDaemon daemon;
  const tuner::Client client(daemon.path());
  const tuner::Kernel first = client.get("gemm", kDims, kAttributes);
  const tuner::Kernel second =
      client.get("gemm", {{"k", 1024}, {"m", 64}, {"n", 1024}}, {{"epilogue", "none"}, {"dtype", "bf16"}});
  CHECK(first.handle() == second.handle());
  CHECK(daemon.gets() == 1);
  client.get("gemm", {{"m", 65}, {"n", 1024}, {"k", 1024}}, kAttributes);
  CHECK(daemon.gets() == 2);
}

TEST_CASE("a get that waits for tuning asks again while the kernel held was not measured for exactly this problem") {
  FakeDaemon daemon;
  const tuner::Client client(daemon.path());
  const tuner::Kernel kernel = client.get("gemm", kDims, kAttributes);
  daemon.get = [&](const Json& request, int& fd) {
    Json answer = daemon.serve(request, fd);
    answer["quality"] = "exact";
    return answer;
  };
  const tuner::Kernel tuned = client.get("gemm", kDims, kAttributes, TUNER_TUNED);
  CHECK(tuned.handle() == kernel.handle());
  CHECK(kernel.info().quality == std::string("exact"));
  client.get("gemm", kDims, kAttributes, TUNER_TUNED);
  CHECK(daemon.gets() == 2);
}

TEST_CASE("the daemon's error arrives with its field") {
  FakeDaemon daemon;
  daemon.get = [](const Json& request, int&) {
    return wire::error_reply(request["id"], Error{Code::not_found, "no such op", "op", "gem", "an op", "gemm"});
  };
  const tuner::Client client(daemon.path());
  CHECK(get_error(client) == std::pair<int, std::string>(TUNER_NOT_FOUND, "op"));
  CHECK(std::string(tuner_last_error(nullptr)).find("did you mean gemm?") != std::string::npos);
}

TEST_CASE("a cubin that is not what the answer says is refused, each time naming what was wrong") {
  const auto refused = [](const std::function<void(Json&, int&)>& spoil) {
    FakeDaemon daemon;
    daemon.get = [&](const Json& request, int& fd) {
      Json answer = daemon.serve(request, fd);
      spoil(answer, fd);
      return answer;
    };
    const auto [status, field] = get_error(tuner::Client(daemon.path()));
    CHECK(status == TUNER_CORRUPT);
    return field;
  };
  const auto replace = [](int& fd, int with) {
    ::close(fd);
    fd = with;
  };
  CHECK(refused([&](Json&, int& fd) {
          replace(fd, sealed_memfd("\x7f"
                                   "ELF other cubin"));
        }) == "kernel_digest");
  CHECK(refused([&](Json&, int& fd) { replace(fd, sealed_memfd("short")); }) == "cubin_bytes");
  CHECK(refused([&](Json&, int& fd) {
          replace(fd, sealed_memfd("\x7f"
                                   "ELF first cubin",
                                   F_SEAL_WRITE));
        }) == "seals");
  CHECK(refused([&](Json&, int& fd) {
          replace(fd, sealed_memfd("\x7f"
                                   "ELF first cubin",
                                   0));
        }) == "seals");
  CHECK(refused([&](Json&, int& fd) { replace(fd, ::open("/dev/null", O_RDONLY | O_CLOEXEC)); }) == "seals");
  CHECK(refused([&](Json&, int& fd) { replace(fd, -1); }) == "cubin");
  CHECK(refused([&](Json& answer, int&) { answer["op"] = "rmsnorm"; }) == "op");
  CHECK(refused([&](Json& answer, int&) { answer["problem_json"]["dims"]["m"] = 63; }) == "m");
}

TEST_CASE("an answer that cannot be understood is an error, and the next get works") {
  FakeDaemon daemon;
  std::vector<std::function<void(Json&)>> spoils{
      [](Json& answer) { answer["recipe"] = nullptr; },
      [](Json& answer) { answer["recipe"]["arguments"][0]["name"] = "zz"; },
      [](Json& answer) { answer["recipe"]["launch"]["grid"][0] = Json{"+"}; },
      [](Json& answer) { answer["problem_json"]["dims"] = 5; },
      [](Json& answer) { answer["problem_json"].erase("dtype"); },
      [](Json& answer) { answer["problem_json"]["dims"]["m"] = "64"; },
      [](Json& answer) { answer["problem_json"]["strides"]["ld_x"] = 1; },
      [](Json& answer) { answer["quality"] = 5; },
      [](Json& answer) {
        answer = {{"ok", true}};
      },
      [](Json& answer) {
        answer = {{"ok", "yes"}};
      },
  };
  const tuner::Client client(daemon.path());
  for (const auto& spoil : spoils) {
    daemon.get = [&](const Json& request, int& fd) {
      Json answer = daemon.serve(request, fd);
      spoil(answer);
      return answer;
    };
    CHECK(get_error(client).first != TUNER_OK);
  }
  daemon.get = [&](const Json& request, int& fd) { return daemon.serve(request, fd); };
  CHECK(get_error(client).first == TUNER_OK);
}

TEST_CASE("a daemon that does not answer is a deadline, and its late reply disturbs nobody") {
  FakeDaemon daemon;
  daemon.get = [&](const Json& request, int& fd) {
    if (request["deadline_ms"] == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1000));
    return daemon.serve(request, fd);
  };
  const tuner::Client client(daemon.path());
  CHECK(get_error(client, kDims, TUNER_NOW, 1).first == TUNER_DEADLINE);
  CHECK(get_error(client).first == TUNER_OK);
}

TEST_CASE("names given twice, null names and null arrays are errors before anything is sent") {
  FakeDaemon daemon;
  const tuner::Client client(daemon.path());
  CHECK(get_error(client, {{"m", 1}, {"m", 2}}) == std::pair<int, std::string>(TUNER_INVALID_ARGUMENT, "m"));
  tuner_kernel* kernel = nullptr;
  const tuner_dim nameless{nullptr, 5};
  CHECK(tuner_get(client.handle(), "gemm", &nameless, 1, nullptr, 0, TUNER_NOW, 0, &kernel) == TUNER_INVALID_ARGUMENT);
  CHECK(tuner_get(client.handle(), "gemm", nullptr, 1, nullptr, 0, TUNER_NOW, 0, &kernel) == TUNER_INVALID_ARGUMENT);
  CHECK(tuner_get(client.handle(), nullptr, nullptr, 0, nullptr, 0, TUNER_NOW, 0, &kernel) == TUNER_INVALID_ARGUMENT);
  CHECK(tuner_get(client.handle(), "", nullptr, 0, nullptr, 0, TUNER_NOW, 0, &kernel) == TUNER_INVALID_ARGUMENT);
  CHECK(tuner_get(client.handle(), "gemm", nullptr, 0, nullptr, 0, 7, 0, &kernel) == TUNER_INVALID_ARGUMENT);
  CHECK(tuner_get(nullptr, "gemm", nullptr, 0, nullptr, 0, TUNER_NOW, 0, &kernel) == TUNER_INVALID_ARGUMENT);
  CHECK(kernel == nullptr);
  CHECK(daemon.gets() == 0);
}

TEST_CASE("many threads ask for many problems at once, and each gets its own") {
  FakeDaemon daemon;
  const tuner::Client client(daemon.path());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const std::int64_t m = 1 + i % 10;
        const tuner::Kernel kernel = client.get("gemm", {{"m", m}, {"n", 64}, {"k", 64}}, kAttributes);
        if (Json::parse(kernel.info().json)["problem_json"]["dims"]["m"] != m) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(daemon.gets() <= 80);
}

TEST_CASE("kernels past the bound push out those nobody holds; when all are held the get says so") {
  FakeDaemon daemon;
  tuner_options options = TUNER_OPTIONS_INIT;
  options.socket_path = daemon.path().c_str();
  options.max_kernels = 2;
  tuner_client* client = nullptr;
  REQUIRE(tuner_connect(&options, &client) == TUNER_OK);
  const auto get = [&](std::int64_t m, tuner_kernel** kernel) {
    const tuner_dim dims[] = {{"m", m}, {"n", 64}, {"k", 64}};
    return tuner_get(client, "gemm", dims, 3, nullptr, 0, TUNER_NOW, 0, kernel);
  };
  tuner_kernel *a = nullptr, *b = nullptr, *c = nullptr;
  REQUIRE(get(1, &a) == TUNER_OK);
  REQUIRE(get(2, &b) == TUNER_OK);
  CHECK(get(3, &c) == TUNER_BUSY);
  tuner_kernel_release(a);
  CHECK(get(3, &c) == TUNER_OK);
  tuner_kernel_release(c);
  // A kernel outlives its client.
  CHECK(tuner_close(client) == TUNER_OK);
  tuner_kernel_facts facts{};
  facts.struct_size = sizeof facts;
  CHECK(tuner_kernel_info(b, &facts) == TUNER_OK);
  CHECK(facts.generation == 3);
  tuner_kernel_release(b);
}
