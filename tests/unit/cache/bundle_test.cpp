#include "bundle_format.h"
#include "cbor_check.h"
#include "fixture.h"

using namespace tunerd;
using namespace tunerd::cache;
using namespace tunerd::cache::test;

namespace {

BundleWinner entry_of(const Problem& problem, const std::string& name, double time_us = 12.5) {
  BundleWinner entry;
  entry.context = h200();
  entry.artifact = kernel(name, 64);
  entry.winner = winner_of(problem, entry.artifact, time_us);
  entry.winner.at = "2025-01-01T00:00:00.000Z";
  entry.samples = {sample_of(entry.winner, time_us)};
  entry.samples[0].at = entry.winner.at;
  return entry;
}

Bundle small_bundle() {
  Bundle bundle;
  bundle.created_at = "2025-01-01T00:00:00.000Z";
  bundle.created_by = "test";
  bundle.winners = {entry_of(gemm(16), "a")};
  return bundle;
}

bool nothing_stored(Store& store) {
  const Counts counts = must(store.counts());
  return counts.winners == 0 && counts.samples == 0 && counts.artifacts == 0 && counts.problems == 0;
}

}  // namespace

TEST_CASE("a bundle carries winners with samples, context and kernels from one cache to another") {
  TemporaryFolder from, to;
  {
    Store store = must_open(in(from.path()));
    tune(store, h200(), gemm(16), "a");
    tune(store, h200(), gemm(32), "b");
    must(write_bundle(from.path() / "winners.bundle", must(export_bundle(store))));
  }
  const Bundle bundle = must(read_bundle(from.path() / "winners.bundle"));
  CHECK(bundle.winners.size() == 2);
  CHECK_FALSE(bundle.created_at.empty());
  Store store = must_open(in(to.path()));
  const ImportReport report = must(import_bundle(store, bundle));
  CHECK(report.imported == 2);
  CHECK(report.kept == 0);
  const auto winner = must(store.winner(h200(), key_of(gemm(32))));
  REQUIRE(winner.has_value());
  CHECK(winner->kernel_digest == kernel("b").digest);
  CHECK(must(store.get_artifact(kernel("b").kernel_key))->cubin == kernel("b").cubin);
  const auto samples = must(store.samples(h200(), key_of(gemm(32))));
  REQUIRE(samples.size() == 1);
  CHECK(samples[0].samples_us == sample_of(*winner).samples_us);
  const ImportReport again = must(import_bundle(store, bundle));
  CHECK(again.imported == 0);
  CHECK(again.kept == 2);
  CHECK(must(store.counts()).samples == 2);
}

TEST_CASE("a bundle without kernels still carries the winners and the digests to check a rebuild by") {
  TemporaryFolder folder;
  Store store = must_open(in(folder.path()));
  tune(store, h200(), gemm(16), "a");
  const Bundle bundle = must(decode_bundle(encode_bundle(must(export_bundle(store, false)))));
  REQUIRE(bundle.winners.size() == 1);
  CHECK(bundle.winners[0].artifact.cubin.empty());
  CHECK(bundle.winners[0].artifact.digest == kernel("a").digest);
}

TEST_CASE("a bundle cut off anywhere is rejected whole") {
  const std::string bytes = encode_bundle(small_bundle());
  REQUIRE(decode_bundle(bytes).has_value());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto cut = decode_bundle(std::string_view(bytes).substr(0, size));
    REQUIRE_FALSE(cut);
    REQUIRE(cut.error().code == Code::corrupt);
  }
  CHECK_FALSE(decode_bundle(bytes + "x"));
}

TEST_CASE("a bundle with any one bit flipped is rejected whole") {
  const std::string bytes = encode_bundle(small_bundle());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      const auto decoded = decode_bundle(flipped);
      REQUIRE_FALSE(decoded);
      REQUIRE(decoded.error().code == Code::corrupt);
    }
  }
}

TEST_CASE("a bundle whose envelope is right and whose fields contradict each other is rejected") {
  const auto rejected = [](auto change) {
    Bundle bundle = small_bundle();
    change(bundle.winners[0]);
    const auto decoded = decode_bundle(encode_bundle(bundle));
    return !decoded && decoded.error().code == Code::corrupt && !decoded.error().field.empty();
  };
  CHECK(rejected([](BundleWinner& e) { e.artifact.cubin[3] = static_cast<char>(e.artifact.cubin[3] ^ 1); }));
  CHECK(rejected([](BundleWinner& e) { e.artifact.digest = sha256_hex("other"); }));
  CHECK(rejected([](BundleWinner& e) { e.winner.kernel_key = "other"; }));
  CHECK(rejected([](BundleWinner& e) { e.winner.kernel_digest = "other"; }));
  CHECK(rejected([](BundleWinner& e) { e.artifact.arch = "sm_80"; }));
  CHECK(rejected([](BundleWinner& e) { e.artifact.variant = "other{}"; }));
  CHECK(rejected([](BundleWinner& e) { e.winner.problem_key = "rmsnorm{rows=1}"; }));
  CHECK(rejected([](BundleWinner& e) { e.context.device_class.kind = "offline"; }));
}

TEST_CASE("a bundle with an unknown or missing field, or a wrong type, is rejected with the field's name") {
  const auto decode_changed = [](auto change) {
    Json body = bundle_to_json(small_bundle());
    change(body);
    return bundle_from_json(body);
  };
  auto unknown = decode_changed([](Json& body) { body["winners"][0]["winner"]["tme_us"] = 1; });
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().text().find("tme_us") != std::string::npos);
  CHECK(unknown.error().suggestion == "time_us");
  auto missing = decode_changed([](Json& body) { body["winners"][0]["winner"].erase("variant"); });
  REQUIRE_FALSE(missing);
  CHECK(missing.error().text().find("variant") != std::string::npos);
  CHECK_FALSE(decode_changed([](Json& body) { body["winners"][0]["samples"] = 3; }));
  CHECK_FALSE(decode_changed([](Json& body) { body["winners"][0]["samples"][0]["samples_us"] = {"a"}; }));
  CHECK_FALSE(decode_changed([](Json& body) { body["winners"][0]["artifact"]["cubin"] = "text"; }));
  CHECK_FALSE(decode_changed([](Json& body) { body["winners"][0]["winner"]["generation"] = -1; }));
  CHECK_FALSE(decode_changed([](Json& body) { body = Json::array(); }));
}

TEST_CASE("nesting a hundred thousand deep is rejected by depth, without a crash") {
  const std::string deep = std::string(100'000, '\x81') + '\x01';
  const Status checked = check_cbor(deep, 48);
  REQUIRE_FALSE(checked);
  CHECK(checked.error().message.find("too deep") != std::string::npos);
  CHECK_FALSE(check_cbor(std::string(100'000, '\x9f'), 48));
}

TEST_CASE("bytes that are not one CBOR item are refused") {
  CHECK(check_cbor(std::string("\xa1\x61\x61\x01", 4), 4));
  CHECK(check_cbor(std::string("\xbf\x61\x61\x9f\x01\xff\xff", 7), 4));
  for (const std::string& bytes :
       {std::string(), std::string("\x01\x01", 2), std::string("\xff", 1), std::string("\x62\x61", 2),
        std::string("\xa1\x61\x61", 3), std::string("\xbf\x61\x61\xff", 4), std::string("\xc0\x01", 2),
        std::string("\x9b\xff\xff\xff\xff\xff\xff\xff\xff", 9), std::string("\x1c", 1), std::string("\x19\x01", 2),
        std::string("\x7f\xff", 2)}) {
    CHECK_FALSE(check_cbor(bytes, 4));
  }
}

TEST_CASE("an import that fails in the middle imports nothing") {
  TemporaryFolder folder;
  Store store = must_open(in(folder.path()));
  Bundle bundle;
  bundle.winners = {entry_of(gemm(16), "a"), entry_of(gemm(32), "b"), entry_of(gemm(64), "c")};
  SUBCASE("a kernel that fails its digest") { bundle.winners[2].artifact.cubin += "x"; }
  SUBCASE("a winner without a variant") { bundle.winners[2].winner.variant.clear(); }
  CHECK_FALSE(import_bundle(store, bundle));
  CHECK(nothing_stored(store));
  bundle.winners.pop_back();
  CHECK(must(import_bundle(store, bundle)).imported == 2);
}

TEST_CASE("a full disk in the middle of an import imports nothing, and the store goes on") {
  TemporaryFolder folder;
  OpenOptions options = in(folder.path());
  options.max_bytes = 600'000;
  Store store = must_open(options);
  Bundle bundle;
  for (int i = 1; i <= 3; ++i) {
    BundleWinner entry = entry_of(gemm(i), "k" + std::to_string(i));
    entry.artifact = kernel("k" + std::to_string(i), 300'000);
    entry.winner = winner_of(gemm(i), entry.artifact);
    bundle.winners.push_back(std::move(entry));
  }
  const auto imported = import_bundle(store, bundle);
  REQUIRE_FALSE(imported);
  CHECK(imported.error().code == Code::io);
  CHECK(nothing_stored(store));
  bundle.winners.resize(1);
  CHECK(must(import_bundle(store, bundle)).imported == 1);
}

TEST_CASE("a bundle of another device class is rejected with both classes named, and nothing is imported") {
  TemporaryFolder folder;
  Store store = must_open(in(folder.path()));
  const auto imported = import_bundle(store, small_bundle(), "cuda/sm_80/108sm/2000GBps/mig=none/400W");
  REQUIRE_FALSE(imported);
  CHECK(imported.error().code == Code::unsupported);
  CHECK(imported.error().value == h200().device_class.key());
  CHECK(imported.error().expected == "cuda/sm_80/108sm/2000GBps/mig=none/400W");
  CHECK(nothing_stored(store));
}

TEST_CASE("of a mixed bundle only the asked-for device class is imported, and the rest is named") {
  TemporaryFolder folder;
  Store store = must_open(in(folder.path()));
  Bundle bundle = small_bundle();
  bundle.winners.push_back(entry_of(gemm(32), "b"));
  bundle.winners[1].context.device_class.sm_count = 66;
  const ImportReport report = must(import_bundle(store, bundle, h200().device_class.key()));
  CHECK(report.imported == 1);
  REQUIRE(report.skipped.size() == 1);
  CHECK(report.skipped[0].find("66sm") != std::string::npos);
  CHECK(must(store.all_winners()).size() == 1);
}

TEST_CASE("an import keeps what is at least as good here") {
  TemporaryFolder folder;
  Store store = must_open(in(folder.path()));
  tune(store, h200(), gemm(16), "ours", 12);
  const auto import_one = [&](BundleWinner entry) {
    Bundle bundle;
    bundle.winners = {std::move(entry)};
    return must(import_bundle(store, bundle));
  };
  CHECK(import_one(entry_of(gemm(16), "slower", 13)).kept == 1);
  CHECK(import_one(entry_of(gemm(16), "equal", 12)).kept == 1);
  BundleWinner predicted = entry_of(gemm(16), "predicted", 0);
  predicted.winner.measured = false;
  CHECK(import_one(predicted).kept == 1);
  CHECK(must(store.winner(h200(), key_of(gemm(16))))->kernel_digest == kernel("ours").digest);
  CHECK(import_one(entry_of(gemm(16), "faster", 11)).imported == 1);
  CHECK(must(store.winner(h200(), key_of(gemm(16))))->kernel_digest == kernel("faster", 64).digest);
  BundleWinner newer_template = entry_of(gemm(16), "new", 15);
  newer_template.winner.template_digest = sha256_hex("changed.cu");
  newer_template.winner.at = "9999-01-01T00:00:00.000Z";
  CHECK(import_one(newer_template).imported == 1);
}
