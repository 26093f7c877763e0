#include <doctest/doctest.h>

#include "fake_daemon.h"
#include "tuner.hpp"

using namespace tunerd;

namespace {

const tuner::Dims kDims{{"m", 64}, {"n", 1024}, {"k", 1024}};

struct Seen {
  std::atomic<int> calls{0};
  std::atomic<std::uint64_t> generation{0};
  static void on_upgrade(tuner_kernel* kernel, std::uint64_t generation, void* user) {
    auto* seen = static_cast<Seen*>(user);
    tuner_kernel_facts facts{};
    facts.struct_size = sizeof facts;
    if (tuner_kernel_info(kernel, &facts) == TUNER_OK && facts.generation == generation) seen->generation = generation;
    ++seen->calls;
  }
};

Json upgrade_of(const tuner::Kernel& kernel, std::uint64_t generation) {
  Json answer = Json::parse(kernel.info().json);
  answer["generation"] = generation;
  return {{"id", 0}, {"type", "upgrade"}, {"answer", answer}};
}

}  // namespace

TEST_CASE("an upgrade is fetched and swapped in, and what was given out before stays valid") {
  FakeDaemon daemon;
  const tuner::Client client(daemon.path());
  const tuner::Kernel kernel = client.get("gemm", kDims);
  const tuner_kernel_facts before = kernel.info();
  Seen seen;
  client.subscribe(&Seen::on_upgrade, &seen);
  daemon.upgrade("second cubin", "sample_gemm{bm=64,bn=64}");
  daemon.push(upgrade_of(kernel, 4));
  REQUIRE(eventually([&] { return seen.calls == 1; }));
  CHECK(seen.generation == 4);
  const tuner_kernel_facts after = kernel.info();
  CHECK(after.generation == 4);
  CHECK(after.variant == std::string("sample_gemm{bm=64,bn=64}"));
  CHECK(std::string(static_cast<const char*>(after.cubin), after.cubin_bytes) == "second cubin");
  CHECK(before.variant == std::string("sample_gemm{bm=32,bn=64}"));
  CHECK(std::string(static_cast<const char*>(before.cubin), before.cubin_bytes) ==
        "\x7f"
        "ELF first cubin");
  CHECK(client.get("gemm", kDims).handle() == kernel.handle());
}

TEST_CASE("without a subscription a kernel stays what it was") {
  FakeDaemon daemon;
  const tuner::Client client(daemon.path());
  const tuner::Kernel kernel = client.get("gemm", kDims);
  daemon.upgrade("second cubin", "sample_gemm{bm=64,bn=64}");
  daemon.push(upgrade_of(kernel, 4));
  client.get("gemm", {{"m", 1}, {"n", 8}, {"k", 8}});  // a round trip after the push
  CHECK(kernel.info().generation == 3);
}

TEST_CASE("a push that is stale, of another problem, or no upgrade changes nothing") {
  FakeDaemon daemon;
  const tuner::Client client(daemon.path());
  const tuner::Kernel kernel = client.get("gemm", kDims);
  client.subscribe();
  REQUIRE(eventually([&] { return daemon.gets() == 2; }));  // the refresh that comes with subscribing
  Json other = upgrade_of(kernel, 9);
  other["answer"]["problem"] = "gemm{m=1}";
  for (const Json& message : {upgrade_of(kernel, 3), other, Json{{"id", 0}}, Json{{"id", 0}, {"type", "upgrade"}},
                              Json{{"id", 0}, {"type", "upgrade"}, {"answer", 5}}, Json{{"id", "x"}}, Json::object()})
    daemon.push(message);
  client.get("gemm", {{"m", 1}, {"n", 8}, {"k", 8}});
  CHECK(daemon.gets() == 3);
  CHECK(kernel.info().generation == 3);
}

TEST_CASE("subscribing later than the get also brings what became better in between") {
  FakeDaemon daemon;
  const tuner::Client client(daemon.path());
  const tuner::Kernel kernel = client.get("gemm", kDims);
  daemon.upgrade("second cubin", "sample_gemm{bm=64,bn=64}");
  client.subscribe();
  CHECK(eventually([&] { return kernel.info().generation == 4; }));
}

TEST_CASE("a broken upgrade keeps the kernel held") {
  FakeDaemon daemon;
  const tuner::Client client(daemon.path());
  const tuner::Kernel kernel = client.get("gemm", kDims);
  client.subscribe();
  std::atomic<bool> asked{false};
  daemon.get = [&](const Json& request, int& fd) {
    Json answer = daemon.serve(request, fd);
    answer["kernel_digest"] = std::string(64, '0');
    asked = true;
    return answer;
  };
  daemon.upgrade("second cubin", "sample_gemm{bm=64,bn=64}");
  daemon.push(upgrade_of(kernel, 4));
  REQUIRE(eventually([&] { return asked.load(); }));
  CHECK_THROWS_AS(client.get("gemm", {{"m", 1}, {"n", 8}, {"k", 8}}), tuner::Error);
  CHECK(kernel.info().generation == 3);
}

TEST_CASE("when the daemon dies kernels held are still served, others fail at once, and a new daemon is found") {
  FakeDaemon daemon;
  const tuner::Client client(daemon.path());
  const tuner::Kernel kernel = client.get("gemm", kDims);
  daemon.stop();
  REQUIRE(eventually([&] { return !client.connected(); }));
  CHECK(client.get("gemm", kDims).handle() == kernel.handle());
  try {
    client.get("gemm", {{"m", 1}, {"n", 8}, {"k", 8}});
    FAIL("served by a dead daemon");
  } catch (const tuner::Error& error) {
    CHECK(error.status() == TUNER_IO);
    CHECK(std::string(error.what()).find(daemon.path()) != std::string::npos);
  }
  daemon.start();
  CHECK(client.get("gemm", {{"m", 1}, {"n", 8}, {"k", 8}}));  // tries to connect again by itself
  CHECK(client.connected());
}

TEST_CASE("after a reconnect a subscriber is subscribed again and gets what became better meanwhile") {
  FakeDaemon daemon;
  const tuner::Client client(daemon.path());
  const tuner::Kernel kernel = client.get("gemm", kDims);
  Seen seen;
  client.subscribe(&Seen::on_upgrade, &seen);
  daemon.stop();
  REQUIRE(eventually([&] { return !client.connected(); }));
  daemon.upgrade("second cubin", "sample_gemm{bm=64,bn=64}");
  daemon.start();
  REQUIRE(eventually([&] { return seen.calls == 1; }));  // with no call of ours
  CHECK(kernel.info().generation == 4);
  CHECK(daemon.subscriptions == 2);
}

TEST_CASE("a new daemon that knows less takes no better kernel away, and its own upgrades count from where it is") {
  FakeDaemon daemon;
  std::atomic<bool> knows_less{false};
  daemon.get = [&](const Json& request, int& fd) {
    Json answer = daemon.serve(request, fd);
    answer["quality"] = knows_less ? "default" : "exact";
    answer["source"] = knows_less ? "predicted" : "measured";
    if (knows_less) answer["generation"] = answer["generation"].get<int>() - 3;  // it counts anew
    return answer;
  };
  const tuner::Client client(daemon.path());
  const tuner::Kernel kernel = client.get("gemm", kDims);
  client.subscribe();
  REQUIRE(eventually([&] { return daemon.gets() == 2; }));
  daemon.stop();
  REQUIRE(eventually([&] { return !client.connected(); }));
  knows_less = true;
  daemon.upgrade("worse cubin", "sample_gemm{bm=8,bn=64}");  // its generation 1
  daemon.start();
  REQUIRE(eventually([&] { return daemon.gets() == 3; }));
  client.get("gemm", {{"m", 1}, {"n", 8}, {"k", 8}});  // comes after the refresh's reply
  CHECK(kernel.info().quality == std::string("exact"));
  CHECK(kernel.info().variant == std::string("sample_gemm{bm=32,bn=64}"));

  daemon.upgrade("second cubin", "sample_gemm{bm=64,bn=64}");
  daemon.push(upgrade_of(kernel, 2));
  CHECK(eventually([&] { return kernel.info().variant == std::string("sample_gemm{bm=64,bn=64}"); }));
}

TEST_CASE("garbage from the daemon ends that connection with an error, never the process; the next get works") {
  FakeDaemon daemon;
  const tuner::Client client(daemon.path());
  const tuner::Kernel kernel = client.get("gemm", kDims);
  std::int64_t m = 1;
  for (const std::string& garbage :
       {std::string("HTTP/1.1 400 Bad Request\r\n\r\n"), std::string(64, '\0'),
        std::string("TNRD\1\0\0\0\xff\xff\xff\xff", 12), std::string("TNRD\1\0\0\0\4\0\0\0\x9f\x9f\x9f\x9f", 16),
        std::string("TNRD\1\0\1\0\1\0\0\0\xa0", 13)}) {
    daemon.push_bytes(garbage);
    REQUIRE(eventually([&] {
      try {
        return static_cast<bool>(client.get("gemm", {{"m", m}, {"n", 8}, {"k", 8}}));
      } catch (const tuner::Error&) {
        return false;
      }
    }));
    ++m;
    CHECK(client.get("gemm", kDims).handle() == kernel.handle());
  }
}

TEST_CASE("closing from within the callback is refused, and a get of a kernel held works there") {
  FakeDaemon daemon;
  const tuner::Client client(daemon.path());
  const tuner::Kernel kernel = client.get("gemm", kDims);
  struct Inside {
    tuner_client* client;
    std::atomic<int> close_status{-1}, held_status{-1}, new_status{-1};
  } inside{client.handle(), {}, {}, {}};
  inside.close_status = -1;
  client.subscribe(
      [](tuner_kernel*, std::uint64_t, void* user) {
        auto* in = static_cast<Inside*>(user);
        tuner_kernel* got = nullptr;
        const tuner_dim dims[] = {{"m", 64}, {"n", 1024}, {"k", 1024}};
        in->held_status = tuner_get(in->client, "gemm", dims, 3, nullptr, 0, TUNER_NOW, 0, &got);
        tuner_kernel_release(got);
        in->new_status = tuner_get(in->client, "gemm", dims, 2, nullptr, 0, TUNER_NOW, 0, &got);
        in->close_status = tuner_close(in->client);
      },
      &inside);
  daemon.upgrade("second cubin", "sample_gemm{bm=64,bn=64}");
  daemon.push(upgrade_of(kernel, 4));
  REQUIRE(eventually([&] { return inside.close_status == TUNER_INVALID_ARGUMENT; }));
  CHECK(inside.held_status == TUNER_OK);
  CHECK(inside.new_status == TUNER_INVALID_ARGUMENT);
}

TEST_CASE("launches and facts while upgrades arrive are never torn") {
  FakeDaemon daemon;
  const tuner::Client client(daemon.path());
  const tuner::Kernel kernel = client.get("gemm", kDims);
  client.subscribe();
  std::atomic<bool> done{false};
  std::atomic<int> torn{0};
  std::thread reader([&] {
    while (!done) {
      const tuner_kernel_facts facts = kernel.info();
      const std::string cubin(static_cast<const char*>(facts.cubin), facts.cubin_bytes);
      const bool first = facts.generation == 3;
      if (first ? cubin !=
                      "\x7f"
                      "ELF first cubin"
                : cubin != "cubin " + std::to_string(facts.generation))
        ++torn;
    }
  });
  for (std::uint64_t generation = 4; generation < 24; ++generation) {
    daemon.upgrade("cubin " + std::to_string(generation), "sample_gemm{bm=" + std::to_string(generation) + "}");
    daemon.push(upgrade_of(kernel, generation));
    REQUIRE(eventually([&] { return kernel.info().generation == generation; }));
  }
  done = true;
  reader.join();
  CHECK(torn == 0);
}
