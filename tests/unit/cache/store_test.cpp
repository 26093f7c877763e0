#include <chrono>

#include "fixture.h"

using namespace tunerd;
using namespace tunerd::cache;
using namespace tunerd::cache::test;

TEST_CASE("what is stored comes back whole, also after the store was closed and opened again") {
  TemporaryFolder folder;
  const Problem problem = gemm(16);
  const Artifact artifact = kernel("a");
  {
    Store store = must_open(in(folder.path() / "cache"));
    CHECK(store.warnings().empty());
    tune(store, h200(), problem);
  }
  Store store = must_open(in(folder.path() / "cache"));
  const auto found = must(store.get_artifact(artifact.kernel_key));
  REQUIRE(found.has_value());
  CHECK(found->cubin == artifact.cubin);
  CHECK(found->digest == artifact.digest);
  CHECK(found->entry == "gemm_mma");
  CHECK(found->arch == "sm_90a");
  CHECK(found->nvrtc == "13.0");
  CHECK(found->variant == artifact.variant);
  CHECK(found->registers == 128);
  CHECK(found->spill_bytes == 1);
  CHECK(found->stack_bytes == 2);
  CHECK(found->static_smem_bytes == 3);
  CHECK(found->compile_ms == 310.5);
  CHECK(found->log == "ptxas info");
  CHECK(must(store.has_artifact(artifact.kernel_key)));
  CHECK_FALSE(must(store.has_artifact("absent")));

  const auto winner = must(store.winner(h200(), key_of(problem)));
  REQUIRE(winner.has_value());
  CHECK(winner->problem == problem);
  CHECK(winner->variant == artifact.variant);
  CHECK(winner->kernel_digest == artifact.digest);
  CHECK(winner->measured);
  CHECK(winner->time_us == 12.5);
  CHECK(winner->t_sol_us == 10.25);
  CHECK(winner->recipe == winner_of(problem, artifact).recipe);
  CHECK(winner->device_class_key == h200().device_class.key());
  CHECK(winner->environment_key == h200().environment.key());
  CHECK_FALSE(winner->from_base);
  CHECK_FALSE(winner->at.empty());

  const auto samples = must(store.samples(h200(), key_of(problem)));
  REQUIRE(samples.size() == 1);
  CHECK(samples[0].samples_us == std::vector<double>{12.5, 12.625, 12.375});
  CHECK(samples[0].gates == sample_of(*winner).gates);
  CHECK(samples[0].device_before == sample_of(*winner).device_before);
  CHECK(samples[0].launches_per_replay == 32);
  CHECK(samples[0].copies == 4);
  CHECK(samples[0].launch_floor_us == 1.5);
  CHECK(samples[0].at.back() == 'Z');

  const Counts counts = must(store.counts());
  CHECK(counts.problems == 1);
  CHECK(counts.variants == 1);
  CHECK(counts.samples == 1);
  CHECK(counts.winners == 1);
  CHECK(counts.artifacts == 1);
  CHECK(counts.quarantined == 0);
  CHECK(counts.bytes >= std::int64_t(artifact.cubin.size()));
}

TEST_CASE("a problem with strides, reals and permitted nondeterminism comes back equal") {
  TemporaryFolder folder;
  Store store = must_open(in(folder.path()));
  Problem problem = gemm(std::int64_t{1} << 31);
  problem.dtype = DType::fp16;
  problem.strides = {{"ld_x", 5000}};
  problem.reals = {{"eps", 1e-6}};
  problem.allow_nondeterministic = true;
  tune(store, h200(), problem);
  CHECK(must(store.winner(h200(), key_of(problem)))->problem == problem);
}

TEST_CASE("another device class or environment is a miss") {
  TemporaryFolder folder;
  Store store = must_open(in(folder.path()));
  tune(store, h200(), gemm(16));
  const std::string key = key_of(gemm(16));
  CHECK(must(store.winner(h200(), key)).has_value());
  const auto misses = [&](auto change) {
    Context other = h200();
    change(other);
    return !must(store.winner(other, key)).has_value() && must(store.winners(other)).empty() &&
           must(store.samples(other, key)).empty();
  };
  CHECK(misses([](Context& c) { c.device_class.arch = "sm_80"; }));
  CHECK(misses([](Context& c) { c.device_class.kind = "offline"; }));
  CHECK(misses([](Context& c) { c.device_class.sm_count = 66; }));
  CHECK(misses([](Context& c) { c.device_class.memory_gb_per_s = 2400; }));
  CHECK(misses([](Context& c) { c.device_class.mig = "3g.71gb"; }));
  CHECK(misses([](Context& c) { c.device_class.power_cap_w = 500; }));
  CHECK(misses([](Context& c) { c.environment.nvrtc = "12.9"; }));
  CHECK(misses([](Context& c) { c.environment.driver = "570.1"; }));
  CHECK(misses([](Context& c) { c.environment.flags += " -O1"; }));
  CHECK(misses([](Context& c) { c.environment.measurement_protocol += 1; }));
}

TEST_CASE("winners are listed by op, in the order of their keys") {
  TemporaryFolder folder;
  Store store = must_open(in(folder.path()));
  tune(store, h200(), gemm(32));
  tune(store, h200(), gemm(16));
  Problem norm;
  norm.op = "rmsnorm";
  norm.dims = {{"rows", 4}, {"cols", 4096}};
  tune(store, h200(), norm, "norm");
  Context other = h200();
  other.environment.nvrtc = "12.9";
  tune(store, other, gemm(64));
  const auto gemms = must(store.winners(h200(), "gemm"));
  REQUIRE(gemms.size() == 2);
  CHECK(gemms[0].problem_key < gemms[1].problem_key);
  CHECK(must(store.winners(h200())).size() == 3);
  CHECK(must(store.winners(h200(), "softmax")).empty());
  CHECK(must(store.all_winners()).size() == 4);
}

TEST_CASE("a replaced winner's generation only grows, and grows when its kernel changed") {
  TemporaryFolder folder;
  Store store = must_open(in(folder.path()));
  const Problem problem = gemm(16);
  Winner first = winner_of(problem, kernel("a"));
  first.generation = 7;
  must(store.put_winner(h200(), first));
  Winner second = winner_of(problem, kernel("b"), 11);
  second.generation = 1;
  must(store.put_winner(h200(), second));
  auto now = must(store.winner(h200(), key_of(problem)));
  CHECK(now->kernel_digest == kernel("b").digest);
  CHECK(now->generation == 8);
  second.time_us = 10.5;  // the same kernel, measured again
  must(store.put_winner(h200(), second));
  now = must(store.winner(h200(), key_of(problem)));
  CHECK(now->generation == 8);
  CHECK(now->time_us == 10.5);
  CHECK(must(store.counts()).winners == 1);
}

TEST_CASE("a winner that no real device measured cannot be stored as measured") {
  TemporaryFolder folder;
  Store store = must_open(in(folder.path()));
  for (const char* kind : {"offline", "replay"}) {
    Context context = h200();
    context.device_class.kind = kind;
    const Status put = store.put_winner(context, winner_of(gemm(16), kernel("a")));
    REQUIRE_FALSE(put);
    CHECK(put.error().field == "measured");
  }
  CHECK(must(store.counts()).winners == 0);
}

TEST_CASE("a quarantined variant stays quarantined after a restart, for its device class") {
  TemporaryFolder folder;
  const std::string device = h200().device_class.key();
  {
    Store store = must_open(in(folder.path()));
    must(store.quarantine({"gemm_mma{bm=128}", "d1", "", device, "never ends", ""}));
    must(store.quarantine({"gemm_mma{bm=128}", "d1", "", device, "never ends, again", ""}));
    must(store.quarantine({"gemm_mma{bm=64}", "d1", "gemm{m=1}", "cuda/other", "illegal access", ""}));
  }
  Store store = must_open(in(folder.path()));
  const auto here = must(store.quarantined(device));
  REQUIRE(here.size() == 1);
  CHECK(here[0].variant == "gemm_mma{bm=128}");
  CHECK(here[0].template_digest == "d1");
  CHECK(here[0].reason == "never ends, again");
  CHECK_FALSE(here[0].at.empty());
  CHECK(must(store.quarantined("")).size() == 2);
  CHECK(must(store.counts()).quarantined == 2);
}

TEST_CASE("ten thousand winners open and list in a few seconds") {
  TemporaryFolder folder;
  constexpr int kCount = 10'000;
  {
    Bundle bundle;
    const Artifact artifact = kernel("shared");
    for (int i = 1; i <= kCount; ++i) {
      BundleWinner entry;
      entry.context = h200();
      entry.winner = winner_of(gemm(i), artifact);
      entry.artifact = artifact;
      bundle.winners.push_back(std::move(entry));
    }
    Store store = must_open(in(folder.path()));
    CHECK(must(import_bundle(store, bundle)).imported == kCount);
  }
  const auto start = std::chrono::steady_clock::now();
  Store store = must_open(in(folder.path()));
  const auto opened = std::chrono::steady_clock::now();
  CHECK(must(store.winners(h200())).size() == kCount);
  const auto listed = std::chrono::steady_clock::now();
  MESSAGE("open " << std::chrono::duration<double>(opened - start).count() << " s, list "
                  << std::chrono::duration<double>(listed - opened).count() << " s");
  CHECK(opened - start < std::chrono::seconds(2));
  CHECK(listed - opened < std::chrono::seconds(10));
}
