#include "model/device.h"

#include <fstream>

#include "fixture.h"

using namespace tunerd;
using namespace tunerd::testing;

namespace {

Json sample() {
  return Json::parse(R"({"name":"test-gpu","arch":"sm_90a","product_names":["NVIDIA Test"],"sm_count":132,
    "l2_bytes":52428800,"smem_per_block_bytes":232448,"smem_per_sm_bytes":233472,"threads_per_sm":2048,
    "memory_bytes_per_s":4.8e12,"boost_clock_hz":1.83e9,"peak_flops":{"bf16":989.4e12,"//":"dense"},"source":"a test"})");
}

Error broken(const char* pointer, const Json& value) {
  Json json = sample();
  json[Json::json_pointer(pointer)] = value;
  CAPTURE(pointer);
  return error_of(parse_device(json, "d.json"));
}

void spill(const fs::path& file, const Json& json) { std::ofstream(file) << json.dump(); }

std::vector<DeviceSpec> shipped() { return must(load_devices(fs::path(TUNERD_SOURCE_DIR) / "config/devices")); }

}  // namespace

TEST_CASE("a device survives JSON and gives the constraints their symbols") {
  const DeviceSpec device = must(parse_device(sample(), "d.json"));
  CHECK(device.cc == 90);
  CHECK(device.registers_per_sm == 65536);
  CHECK(to_json(must(parse_device(to_json(device), "again"))) == to_json(device));
  CHECK(device.symbols() == Symbols{{"sm_count", 132},
                                    {"cc", 90},
                                    {"smem_per_block_bytes", 232448},
                                    {"smem_per_sm_bytes", 233472},
                                    {"registers_per_sm", 65536},
                                    {"threads_per_sm", 2048},
                                    {"l2_bytes", 52428800}});
}

TEST_CASE("a device file with a typo or an implausible value is an error that names the field") {
  CHECK(broken("/sm_cuont", 1).suggestion == "sm_count");
  CHECK(broken("/peak_flops/bf61", 1e12).suggestion == "bf16");
  CHECK(broken("/peak_flops/bf16", 989.4).expected == "operations per second, from 1e10 to 1e18");  // TFLOP/s
  CHECK(broken("/peak_flops/bf16", -1).field == "d.json.peak_flops.bf16");
  CHECK(broken("/peak_flops/bf16", "fast").value == "\"fast\"");
  CHECK(broken("/peak_flops", Json::object()).field == "d.json.peak_flops");
  CHECK(broken("/memory_bytes_per_s", 4800).field == "d.json.memory_bytes_per_s");  // GB/s
  CHECK(broken("/boost_clock_hz", 1830).field == "d.json.boost_clock_hz");          // MHz
  CHECK(broken("/l2_bytes", 50).field == "d.json.l2_bytes");                        // MB
  CHECK(broken("/sm_count", 0).value == "0.0");
  CHECK(broken("/registers_per_sm", -1).field == "d.json.registers_per_sm");
  CHECK(broken("/smem_per_block_bytes", 300000).expected == "at most smem_per_sm_bytes, 233472");
  CHECK(broken("/arch", "sm90").field == "d.json.arch");
}

TEST_CASE("every required field of a device that is missing is named") {
  for (const char* key : {"name", "arch", "sm_count", "l2_bytes", "smem_per_block_bytes", "smem_per_sm_bytes",
                          "memory_bytes_per_s", "boost_clock_hz", "peak_flops", "source"}) {
    Json json = sample();
    json.erase(key);
    CHECK(error_of(parse_device(json, "d.json")).field == "d.json." + std::string(key));
  }
}

TEST_CASE("a folder of devices is read sorted by name; a broken file, a repeated name and no file are errors") {
  const TemporaryFolder folder;
  CHECK(error_of(load_devices(folder.path())).value == folder.path().string());
  CHECK(error_of(load_devices(folder.path() / "none")).field == "devices");
  Json b = sample(), a = sample();
  b["name"] = "b";
  a["name"] = "a";
  spill(folder.path() / "1.json", b);
  spill(folder.path() / "2.json", a);
  spill(folder.path() / "README.md", "not a device");
  const auto devices = must(load_devices(folder.path()));
  REQUIRE(devices.size() == 2);
  CHECK(devices[0].name == "a");
  spill(folder.path() / "3.json", a);
  CHECK(error_of(load_devices(folder.path())).value == "a");
  std::ofstream(folder.path() / "3.json") << "{";
  CHECK(error_of(load_devices(folder.path())).message.find("3.json") != std::string::npos);
}

TEST_CASE("a device is found by name, a near miss is suggested") {
  const auto devices = shipped();
  CHECK(must(find_device(devices, "h200-sxm")).sm_count == 132);
  CHECK(error_of(find_device(devices, "h200_sxm")).suggestion == "h200-sxm");
}

TEST_CASE("every architecture has its stand-in, with or without the a") {
  const auto devices = shipped();
  const std::pair<const char*, const char*> cases[] = {
      {"sm_75", "t4"},        {"sm_80", "a100-sxm-80gb"}, {"sm_86", "a10"},   {"sm_89", "l40s"},
      {"sm_90", "h200-sxm"},  {"sm_90a", "h200-sxm"},     {"sm_100", "b200"}, {"sm_100a", "b200"},
      {"sm_120", "rtx-5090"}, {"sm_120a", "rtx-5090"}};
  for (const auto& [arch, name] : cases) {
    CAPTURE(arch);
    const DeviceSpec device = must(representative_device(devices, arch));
    CHECK(device.name == name);
    CHECK(device.arch == full_arch(arch));
  }
  const Error unknown = error_of(representative_device(devices, "sm_91"));
  CHECK(unknown.expected == "one of sm_75, sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_120a");
  CHECK_FALSE(unknown.suggestion.empty());
  CHECK(error_of(representative_device(devices, "hopper")).field == "arch");
}

TEST_CASE("an architecture is sm_ and digits, perhaps with a or f") {
  CHECK(must(arch_cc("sm_90a")) == 90);
  CHECK(must(arch_cc("sm_100f")) == 100);
  CHECK(must(arch_cc("sm_75")) == 75);
  for (const char* arch : {"", "sm_", "sm_9", "sm_90b", "sm_90aa", "sm90", "compute_90", "sm_-90", "sm_090", "sm_999",
                           "SM_90", "sm_90 ", "sm_99999999999"}) {
    CAPTURE(arch);
    CHECK(error_of(arch_cc(arch)).value == arch);
  }
}

TEST_CASE("a device class has a key of all its parts, and survives JSON") {
  const DeviceClass device{"sm_90a", "cuda", 132, 4800, "none", 700};
  CHECK(device.key() == "cuda/sm_90a/132sm/4800GBps/mig=none/700W");
  CHECK(must(device_class_from_json(to_json(device))) == device);
  for (const DeviceClass& other :
       {DeviceClass{"sm_90", "cuda", 132, 4800, "none", 700}, DeviceClass{"sm_90a", "replay", 132, 4800, "none", 700},
        DeviceClass{"sm_90a", "cuda", 114, 4800, "none", 700}, DeviceClass{"sm_90a", "cuda", 132, 3350, "none", 700},
        DeviceClass{"sm_90a", "cuda", 132, 4800, "1g.18gb", 700},
        DeviceClass{"sm_90a", "cuda", 132, 4800, "none", 600}})
    CHECK(other.key() != device.key());
}

TEST_CASE("a device class of an unknown kind or with a negative number is refused") {
  Json json = to_json(DeviceClass{"sm_90a", "cuda", 132, 4800, "none", 700});
  json["kind"] = "simulated";
  CHECK(error_of(device_class_from_json(json)).expected == "one of cuda, offline, replay");
  json["kind"] = "cuda";
  json["power_cap_w"] = -1;
  CHECK(error_of(device_class_from_json(json)).field == "device_class.power_cap_w");
}
