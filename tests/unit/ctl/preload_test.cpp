#include "ctl/preload.h"

#include <unistd.h>

#include "ctl/kernel_job.h"
#include "fixture.h"
#include "model/digest.h"

using namespace tunerd;
using namespace tunerd::ctl;
using namespace tunerd::ctl::test;

namespace {

std::string nvrtc_here() { return must(worker_host::nvrtc_version(compile_pool_options(1))); }

std::string flags_here() {
  std::string text;
  for (const std::string& option : fixed_nvrtc_options()) text += (text.empty() ? "" : " ") + option;
  return text;
}

// As a node with an H200 would have exported it: two problems, really compiled, times made up.
cache::Bundle exported(const fs::path& templates) {
  const Catalog catalog = must(Catalog::load({templates}));
  const OpEntry& op = *must(catalog.op("scale"));
  const DeviceSpec device = must(find_device(must(load_devices(TUNERD_SOURCE_DIR "/config/devices")), "h200-sxm"));
  cache::Bundle bundle;
  bundle.created_at = "2025-01-01T00:00:00.000Z";
  bundle.created_by = "test";
  std::vector<wire::CompileJob> jobs;
  for (const int rows : {8, 16}) {
    cache::BundleWinner entry;
    entry.context.device_class = {"sm_90a", "cuda", device.sm_count, 4800, "none", 700};
    entry.context.environment = {nvrtc_here(), "580.65.06", flags_here(), kMeasurementProtocol};
    cache::Winner& winner = entry.winner;
    winner.problem = must(make_problem(op.op, Json{{"rows", rows}, {"cols", 8}, {"dtype", "fp32"}}));
    winner.problem_key = winner.problem.key(op.op);
    const Variant variant{"scale_rows", {{"threads", rows == 8 ? 64 : 128}}};
    const KernelJob made = must(make_kernel_job(op.templates.at(0), op.op, variant, winner.problem, device));
    winner.variant = variant.text();
    winner.template_digest = op.templates.at(0).closure.digest;
    winner.kernel_key = kernel_key(op.templates.at(0).closure, "scale_rows", made.spec.defines, "sm_90a", nvrtc_here());
    winner.measured = true;
    winner.time_us = 2.5;
    winner.recipe = to_json(made.spec.recipe);
    winner.at = "2025-01-01T00:00:00.000Z";
    entry.artifact.kernel_key = winner.kernel_key;
    entry.artifact.arch = "sm_90a";
    entry.artifact.variant = winner.variant;
    bundle.winners.push_back(std::move(entry));
    jobs.push_back(made.job);
  }
  must(worker_host::compile_all(compile_pool_options(2), jobs, [&](std::size_t i, wire::CompileResult result) {
    REQUIRE_MESSAGE(result.ok, result.error);
    bundle.winners[i].artifact.cubin = result.cubin;
    bundle.winners[i].artifact.digest = bundle.winners[i].winner.kernel_digest = sha256_hex(result.cubin);
  }));
  return bundle;
}

struct Scene {
  Templates templates;
  TemporaryFolder folder;
  cache::Bundle bundle = exported(templates.path());
  std::string bundle_file = folder / "winners.bundle", cache = folder / "cache", shapes = folder / "shapes.json";

  Ran preload(std::vector<std::string> more = {}, const std::string& arch = "sm_90a") {
    must(cache::write_bundle(bundle_file, bundle));
    std::vector<std::string> words = {"preload", "--arch", arch, "--from", bundle_file, "--cache", cache, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return tunerctl(std::move(words));
  }
  void shape(const std::string& text) const { write_text(shapes, text); }
};

constexpr const char* kBoth =
    R"([{"op":"scale","rows":8,"cols":8,"dtype":"fp32"},{"op":"scale","rows":16,"cols":8,"dtype":"fp32"}])";

}  // namespace

TEST_CASE("preload compiles every winner of the architecture into a cache that hits when served read-only") {
  Scene scene;
  scene.shape(kBoth);
  // A bundle without kernels does as well: they are compiled here.
  for (auto& entry : scene.bundle.winners) entry.artifact.cubin.clear();
  const Ran ran = scene.preload({"--expect-hit", scene.shapes});
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  const Json result = ran.json();
  CHECK(result["winners"] == 2);
  CHECK(result["kernels"] == 2);
  CHECK(result["stale"].empty());
  CHECK(result["audit"]["problems"] == 2);
  CHECK(result["audit"]["hits"] == 2);
  cache::OpenOptions open;
  open.folder = scene.cache;
  open.read_only = true;
  cache::Store store = must(cache::Store::open(open));
  for (const auto& entry : scene.bundle.winners) {
    const auto winner = must(store.winner(entry.context, entry.winner.problem_key));
    REQUIRE(winner.has_value());
    CHECK(winner->recipe == entry.winner.recipe);
    CHECK(must(store.get_artifact(winner->kernel_key))->digest == entry.winner.kernel_digest);
  }
  CHECK((fs::status(scene.cache).permissions() & fs::perms::others_read) != fs::perms::none);
}

TEST_CASE("the audit exits with 4 and names the field that differs, for every miss") {
  Scene scene;
  scene.shape(
      R"([{"op":"scale","rows":8,"cols":8},{"op":"scale","rows":9,"cols":8},{"op":"scale","rows":8,"cols":8,"sign":"minus"}])");
  const Ran ran = scene.preload({"--expect-hit", scene.shapes});
  CHECK(ran.code == kMiss);
  const Json audit = ran.json()["audit"];
  CHECK(audit["hits"] == 1);
  REQUIRE(audit["misses"].size() == 2);
  CHECK(audit["misses"][0]["differences"][0]["field"] == "rows");
  CHECK(audit["misses"][0]["differences"][0]["here"] == "9");
  CHECK(audit["misses"][1]["differences"][0]["field"] == "sign");
}

TEST_CASE("a winner of a changed template is named, not served, and an audited miss") {
  Scene scene;
  scene.bundle.winners[1].winner.template_digest = "another";
  scene.shape(kBoth);
  const Ran ran = scene.preload({"--expect-hit", scene.shapes});
  CHECK(ran.code == kMiss);
  const Json result = ran.json();
  REQUIRE(result["stale"].size() == 1);
  CHECK(result["stale"][0]["differences"][0]["field"] == "template_digest");
  CHECK(result["stale"][0]["differences"][0]["there"] == "another");
  CHECK(ran.err.find("template_digest: another there") != std::string::npos);
  REQUIRE(result["audit"]["misses"].size() == 1);
  CHECK(result["audit"]["misses"][0]["differences"][0]["field"] == "template_digest");
}

TEST_CASE("a bundle of another NVRTC is an error that names both versions, and nothing is written") {
  Scene scene;
  for (auto& entry : scene.bundle.winners) entry.context.environment.nvrtc = "12.4";
  const Ran ran = scene.preload();
  CHECK(ran.code == kFailed);
  CHECK(ran.out.empty());
  const Json error = Json::parse(ran.err.substr(ran.err.rfind("{\"error\"")))["error"];
  CHECK(error["field"] == "environment.nvrtc");
  CHECK(error["value"].get<std::string>().find("12.4") != std::string::npos);
  CHECK(error["expected"].get<std::string>().find(nvrtc_here()) != std::string::npos);
  CHECK_FALSE(fs::exists(scene.cache));
}

TEST_CASE("a kernel that does not come out as it was measured is an error with both digests, and nothing is written") {
  Scene scene;
  auto& entry = scene.bundle.winners[0];
  entry.artifact.cubin.clear();
  entry.winner.kernel_digest = entry.artifact.digest = std::string(64, 'a');
  const Ran ran = scene.preload();
  CHECK(ran.code == kFailed);
  CHECK(ran.err.find(std::string(64, 'a')) != std::string::npos);
  CHECK(ran.err.find("NVRTC " + nvrtc_here()) != std::string::npos);
  CHECK_FALSE(fs::exists(scene.cache));
}

TEST_CASE("preload with bad input: another architecture, a broken bundle, a broken shape file") {
  Scene scene;
  const Ran arch = scene.preload({}, "sm_80");
  CHECK(arch.code == kUsage);
  CHECK(arch.err.find("sm_90a") != std::string::npos);
  CHECK(scene.preload({}, "hopper").code == kUsage);
  scene.shape(R"([{"op":"scale","rows":8,"colls":8}])");
  const Ran shape = scene.preload({"--expect-hit", scene.shapes});
  CHECK(shape.code == kUsage);
  CHECK(shape.err.find("problems[0]") != std::string::npos);
  CHECK(shape.err.find("cols") != std::string::npos);
  must(cache::write_bundle(scene.bundle_file, scene.bundle));
  std::string bytes = read_text(scene.bundle_file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_text(scene.bundle_file, bytes);
  const Ran broken = tunerctl({"preload", "--arch", "sm_90a", "--from", scene.bundle_file, "--cache", scene.cache});
  CHECK(broken.code == kUsage);
  CHECK(broken.err.find("rejected whole") != std::string::npos);
  CHECK_FALSE(fs::exists(scene.cache));
}

TEST_CASE("export and import work on a cache folder without a daemon") {
  Scene scene;
  REQUIRE(scene.preload().code == 0);
  const std::string file = scene.folder / "again.bundle", other = scene.folder / "other";
  const Ran out = tunerctl({"export", file, "--cache", scene.cache, "--json"});
  REQUIRE_MESSAGE(out.code == 0, out.err);
  CHECK(out.json()["winners"] == 2);
  CHECK(tunerctl({"import", file, "--cache", other, "--json"}).json()["imported"] == 2);
  CHECK(tunerctl({"import", file, "--cache", other, "--json"}).json()["kept"] == 2);
  const Ran wrong = tunerctl({"import", file, "--cache", other, "--device-class", "cuda/none"});
  CHECK(wrong.code == kFailed);
  CHECK(wrong.err.find("cuda/none") != std::string::npos);
  CHECK(tunerctl({"export", file, "--cache", scene.folder / "absent"}).code == kFailed);
}
