#include <unistd.h>

#include <cstdlib>

#include "fixture.h"
#include "gpu/device.h"

using namespace tunerd;
using namespace tunerd::test;

namespace {

struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "replay.XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }
  std::filesystem::path write(const std::string& name, const Json& json) const {
    must(write_file_atomically(path / name, json.dump()));
    return path / name;
  }
};

Json recording(std::int64_t sm_count = 132) {
  return {{"format", 1},
          {"device", "NVIDIA H200"},
          {"device_class",
           {{"arch", "sm_90a"},
            {"kind", "cuda"},
            {"sm_count", sm_count},
            {"memory_gb_per_s", 4810},
            {"mig", "none"},
            {"power_cap_w", 700}}},
          {"environment", {{"driver", "580.1"}, {"flags", ""}, {"measurement_protocol", 1}, {"nvrtc", "13.0"}}},
          {"problems",
           {{"gelu{rows=1}",
             {{"gelu{threads=64}", {{"status", "ok"}, {"median_us", 4.5}, {"samples_us", {4.4, 4.5, 4.6}}}},
              {"gelu{threads=128}", {{"status", "ok"}, {"median_us", 1.0}, {"samples_us", {1.0}}, {"tainted", true}}},
              {"gelu{threads=256}", {{"status", "wrong"}, {"median_us", 0}, {"samples_us", Json::array()}}}}}}}};
}

wire::MeasureJob job(const std::string& variant, const std::string& problem = "gelu{rows=1}") {
  wire::MeasureJob out;
  out.id = 42;
  out.variant = variant;
  out.problem_key = problem;
  return out;
}

}  // namespace

TEST_CASE("a recorded variant answers with its samples, gates passed, and the kind replay") {
  const Folder folder;
  const auto device = must(gpu::open_replay_device(folder.write("a.recording.json", recording())));
  const auto hello = device->hello();
  CHECK(hello.device_kind == "replay");
  CHECK(hello.device_class.kind == "replay");
  CHECK(hello.device_class.arch == "sm_90a");
  CHECK(hello.product_name == "NVIDIA H200");
  CHECK(hello.driver == "580.1");
  const auto result = device->run(job("gelu{threads=64}"));
  CHECK(result.id == 42);
  CHECK(result.status == "ok");
  CHECK(result.median_us == 4.5);
  CHECK(result.samples_us == std::vector<double>{4.4, 4.5, 4.6});
  REQUIRE(result.gates.size() == 1);
  CHECK(result.gates[0].passed);
  CHECK_FALSE(result.tainted);
}

TEST_CASE("a recorded taint and a recorded failure stay what they were") {
  const Folder folder;
  const auto device = must(gpu::open_replay_device(folder.write("a.recording.json", recording())));
  const auto tainted = device->run(job("gelu{threads=128}"));
  CHECK(tainted.tainted);
  CHECK_FALSE(tainted.taint.empty());
  const auto wrong = device->run(job("gelu{threads=256}"));
  CHECK(wrong.status == "wrong");
  CHECK(contains(wrong.error, "wrong"));
  CHECK(wrong.gates.empty());
}

TEST_CASE("what was not recorded is unsupported and says what is missing, never a made-up time") {
  const Folder folder;
  const auto device = must(gpu::open_replay_device(folder.write("a.recording.json", recording())));
  for (const auto& asked : {job("gelu{threads=32}"), job("gelu{threads=64}", "gelu{rows=2}")}) {
    const auto result = device->run(asked);
    CHECK(result.status == "unsupported");
    CHECK(contains(result.error, asked.variant));
    CHECK(contains(result.error, asked.problem_key));
    CHECK(result.median_us == 0);
    CHECK(result.samples_us.empty());
  }
}

TEST_CASE("a folder of recordings answers for all of them; two device classes in one are refused, naming both") {
  const Folder folder;
  folder.write("a.recording.json", recording());
  Json other = recording();
  other["problems"] = {{"gelu{rows=9}", recording()["problems"]["gelu{rows=1}"]}};
  folder.write("b.recording.json", other);
  folder.write("notes.json", {{"not", "a recording"}});
  const auto device = must(gpu::open_replay_device(folder.path));
  CHECK(device->run(job("gelu{threads=64}", "gelu{rows=9}")).status == "ok");
  CHECK(device->run(job("gelu{threads=64}")).status == "ok");
  folder.write("c.recording.json", recording(78));
  const std::string text = must_fail(gpu::open_replay_device(folder.path)).text();
  CHECK(contains(text, "c.recording.json"));
  CHECK(contains(text, "78sm"));
  CHECK(contains(text, "132sm"));
}

TEST_CASE("a recording with anything missing, unknown or of the wrong type is refused, naming file and field") {
  const Folder folder;
  const auto refused = [&](const char* path, const Json& value, bool remove = false) {
    Json json = recording();
    const Json::json_pointer pointer(path);
    if (remove)
      json[pointer.parent_pointer()].erase(pointer.back());
    else
      json[pointer] = value;
    const auto opened = gpu::open_replay_device(folder.write("x.recording.json", json));
    CAPTURE(path);
    const std::string text = must_fail(opened).text();
    CHECK(contains(text, "x.recording.json"));
    return text;
  };
  const std::string variant = "/problems/gelu{rows=1}/gelu{threads=64}";
  CHECK(contains(refused("/format", 2), "format"));
  CHECK(contains(refused("/format", Json(), true), "format"));
  CHECK(contains(refused("/device_class", Json(), true), "device_class"));
  CHECK(contains(refused("/environment", "none"), "environment"));
  CHECK(contains(refused("/problems", Json::array()), "problems"));
  CHECK(contains(refused("/problems/gelu{rows=1}", 7), "gelu{rows=1}"));
  CHECK(contains(refused((variant + "/median_us").c_str(), "fast"), "median_us"));
  CHECK(contains(refused((variant + "/status").c_str(), Json(), true), "status"));
  CHECK(contains(refused((variant + "/samples_us/1").c_str(), "x"), "samples_us"));
  CHECK(contains(refused((variant + "/medain_us").c_str(), 1), "median_us"));
  CHECK(contains(refused("/problmes", Json::object()), "problems"));
}

TEST_CASE("no file, no JSON and no problem each get a message that names the file") {
  const Folder folder;
  CHECK(contains(must_fail(gpu::open_replay_device(folder.path / "absent.recording.json")).text(), "absent"));
  must(write_file_atomically(folder.path / "bad.recording.json", "{\"format\": 1,"));
  CHECK(contains(must_fail(gpu::open_replay_device(folder.path / "bad.recording.json")).text(), "bad.recording.json"));
  Json empty = recording();
  empty["problems"] = Json::object();
  CHECK_FALSE(gpu::open_replay_device(folder.write("empty.recording.json", empty)));
  const Folder nothing;
  CHECK(contains(must_fail(gpu::open_replay_device(nothing.path)).text(), "recording"));
}

TEST_CASE("the committed recordings are read whole, and each holds a variant that passed") {
  const std::filesystem::path data = std::filesystem::path(TUNERD_SOURCE_DIR) / "tests/data";
  const auto device = must(gpu::open_replay_device(data));
  CHECK(device->hello().device_class.kind == "replay");
  std::size_t problems = 0, times = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data)) {
    if (!entry.path().string().ends_with(".recording.json")) continue;
    const Json json = must(read_json_file(entry.path()));
    for (const auto& [problem, variants] : json.at("problems").items()) {
      ++problems;
      for (const auto& [variant, recorded] : variants.items()) {
        const auto result = device->run(job(variant, problem));
        CHECK(result.status == recorded.at("status").get<std::string>());
        times += result.status == "ok" && result.median_us > 0;
      }
    }
  }
  CHECK(problems >= 5);
  CHECK(times >= problems);
}
