#include "model/device.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "json_text.h"

namespace tunerd {

Symbols DeviceSpec::symbols() const {
  return {{"sm_count", sm_count},
          {"cc", cc},
          {"smem_per_block_bytes", smem_per_block_bytes},
          {"smem_per_sm_bytes", smem_per_sm_bytes},
          {"registers_per_sm", registers_per_sm},
          {"threads_per_sm", threads_per_sm},
          {"l2_bytes", l2_bytes}};
}

Result<int> arch_cc(const std::string& arch) {
  int cc = 0;
  const char* begin = arch.data() + 3;
  const char* end = arch.data() + arch.size();
  const bool prefixed = arch.size() >= 5 && arch.compare(0, 3, "sm_") == 0;
  if (prefixed) {
    const auto [rest, error] = std::from_chars(begin, end, cc);
    const bool suffix = rest == end || (rest + 1 == end && (*rest == 'a' || *rest == 'f'));
    if (error == std::errc() && suffix && *begin != '0' && cc >= 50 && cc <= 200) return cc;
  }
  return bad_input("arch", arch, "an architecture such as sm_80, sm_89, sm_90a, sm_100a, sm_120a");
}

std::string full_arch(const std::string& arch) {
  return arch == "sm_90" || arch == "sm_100" || arch == "sm_103" || arch == "sm_120" || arch == "sm_121" ? arch + "a"
                                                                                                         : arch;
}

namespace {

Status parse_peaks(const Json& peaks, const std::string& path, DeviceSpec& device) {
  static const std::vector<std::string> units{"bf16", "fp16", "tf32", "fp32",          "fp64",
                                              "fp8",  "int8", "fp4",  "fp16_acc_fp16", "fp8_acc_fp16"};
  for (const auto& [name, rate] : peaks.items()) {
    if (name == "//") continue;
    if (std::find(units.begin(), units.end(), name) == units.end()) return unknown_name(path, name, units);
    // A slip of a power of ten or a rate in TFLOP/s would make every report wrong without a word.
    if (!rate.is_number() || !(rate.get<double>() >= 1e10 && rate.get<double>() <= 1e18))
      return bad_input(path + "." + name, shown(rate), "operations per second, from 1e10 to 1e18");
    device.peak_flops[name] = rate.get<double>();
  }
  if (device.peak_flops.empty()) return bad_input(path, "{}", "at least one peak");
  return {};
}

Status check_plausible(const DeviceSpec& device, const std::string& where) {
  struct Bound {
    const char* field;
    double value, least, most;
  };
  const auto as_double = [](std::int64_t value) { return static_cast<double>(value); };
  for (const Bound& bound : {Bound{"sm_count", as_double(device.sm_count), 1, 4096},
                             {"l2_bytes", as_double(device.l2_bytes), 65536, 0x1p34},
                             {"smem_per_block_bytes", as_double(device.smem_per_block_bytes), 16384, 0x1p24},
                             {"smem_per_sm_bytes", as_double(device.smem_per_sm_bytes), 16384, 0x1p24},
                             {"registers_per_sm", as_double(device.registers_per_sm), 1024, 0x1p24},
                             {"threads_per_sm", as_double(device.threads_per_sm), 32, 65536},
                             {"memory_bytes_per_s", device.memory_bytes_per_s, 1e9, 1e15},
                             {"boost_clock_hz", device.boost_clock_hz, 1e8, 1e11}})
    if (!(bound.value >= bound.least && bound.value <= bound.most))
      return bad_input(where + "." + bound.field, Json(bound.value).dump(),
                       "from " + Json(bound.least).dump() + " to " + Json(bound.most).dump());
  if (device.smem_per_block_bytes > device.smem_per_sm_bytes)
    return bad_input(where + ".smem_per_block_bytes", std::to_string(device.smem_per_block_bytes),
                     "at most smem_per_sm_bytes, " + std::to_string(device.smem_per_sm_bytes));
  return {};
}

}  // namespace

Result<DeviceSpec> parse_device(const Json& document, const std::string& where) {
  JsonReader reader(document, where);
  DeviceSpec device;
  TRY_ASSIGN(device.name, reader.string("name"));
  TRY_ASSIGN(device.arch, reader.string("arch"));
  auto cc = arch_cc(device.arch);
  if (!cc) return bad_input(where + ".arch", device.arch, cc.error().expected);
  device.cc = *cc;
  TRY_ASSIGN(device.product_names, reader.strings_or("product_names", {}));
  TRY_ASSIGN(device.sm_count, reader.integer("sm_count"));
  TRY_ASSIGN(device.l2_bytes, reader.integer("l2_bytes"));
  TRY_ASSIGN(device.smem_per_block_bytes, reader.integer("smem_per_block_bytes"));
  TRY_ASSIGN(device.smem_per_sm_bytes, reader.integer("smem_per_sm_bytes"));
  TRY_ASSIGN(device.registers_per_sm, reader.integer_or("registers_per_sm", device.registers_per_sm));
  TRY_ASSIGN(device.threads_per_sm, reader.integer_or("threads_per_sm", device.threads_per_sm));
  TRY_ASSIGN(device.memory_bytes_per_s, reader.number("memory_bytes_per_s"));
  TRY_ASSIGN(device.boost_clock_hz, reader.number("boost_clock_hz"));
  TRY_ASSIGN(device.source, reader.string("source"));
  TRY_ASSIGN(const Json* peaks, reader.object("peak_flops"));
  TRY(parse_peaks(*peaks, where + ".peak_flops", device));
  TRY(reader.finish());
  TRY(check_plausible(device, where));
  return device;
}

Json to_json(const DeviceSpec& device) {
  return {{"name", device.name},
          {"arch", device.arch},
          {"product_names", device.product_names},
          {"sm_count", device.sm_count},
          {"l2_bytes", device.l2_bytes},
          {"smem_per_block_bytes", device.smem_per_block_bytes},
          {"smem_per_sm_bytes", device.smem_per_sm_bytes},
          {"registers_per_sm", device.registers_per_sm},
          {"threads_per_sm", device.threads_per_sm},
          {"memory_bytes_per_s", device.memory_bytes_per_s},
          {"boost_clock_hz", device.boost_clock_hz},
          {"peak_flops", device.peak_flops},
          {"source", device.source}};
}

Result<std::vector<DeviceSpec>> load_devices(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<DeviceSpec> devices;
  // Not a range-for: its increment would throw.
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() != ".json") continue;
    TRY_ASSIGN(const Json document, read_json_file(at->path(), 1 << 20));
    TRY_ASSIGN(auto device, parse_device(document, at->path().filename().string()));
    for (const auto& other : devices)
      if (other.name == device.name)
        return bad_input(at->path().filename().string() + ".name", device.name, "a name no other device file has");
    devices.push_back(std::move(device));
  }
  if (error || devices.empty()) return bad_input("devices", folder.string(), "a folder of device files (*.json)");
  std::sort(devices.begin(), devices.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return devices;
}

Result<DeviceSpec> find_device(const std::vector<DeviceSpec>& devices, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& device : devices) {
    if (device.name == name) return device;
    names.push_back(device.name);
  }
  return unknown_name("device", name, names);
}

Result<DeviceSpec> representative_device(const std::vector<DeviceSpec>& devices, const std::string& arch) {
  static const std::vector<std::pair<std::string, std::string>> stand_ins{
      {"sm_75", "t4"},        {"sm_80", "a100-sxm-80gb"}, {"sm_86", "a10"},       {"sm_89", "l40s"},
      {"sm_90a", "h200-sxm"}, {"sm_100a", "b200"},        {"sm_120a", "rtx-5090"}};
  const std::string full = full_arch(arch);
  std::vector<std::string> archs;
  for (const auto& [known, name] : stand_ins) {
    if (known == full) return find_device(devices, name);
    archs.push_back(known);
  }
  TRY(arch_cc(arch));
  return unknown_name("arch", arch, archs);
}

std::string DeviceClass::key() const {
  return kind + "/" + arch + "/" + std::to_string(sm_count) + "sm/" + std::to_string(memory_gb_per_s) +
         "GBps/mig=" + mig + "/" + std::to_string(power_cap_w) + "W";
}

Json to_json(const DeviceClass& device_class) {
  return {{"arch", device_class.arch},         {"kind", device_class.kind},
          {"sm_count", device_class.sm_count}, {"memory_gb_per_s", device_class.memory_gb_per_s},
          {"mig", device_class.mig},           {"power_cap_w", device_class.power_cap_w}};
}

Result<DeviceClass> device_class_from_json(const Json& json) {
  JsonReader reader(json, "device_class");
  DeviceClass out;
  TRY_ASSIGN(out.arch, reader.string("arch"));
  TRY_ASSIGN(out.kind, reader.string("kind"));
  TRY_ASSIGN(out.sm_count, reader.integer("sm_count"));
  TRY_ASSIGN(out.memory_gb_per_s, reader.integer("memory_gb_per_s"));
  TRY_ASSIGN(out.mig, reader.string("mig"));
  TRY_ASSIGN(out.power_cap_w, reader.integer("power_cap_w"));
  TRY(reader.finish());
  if (out.kind != "cuda" && out.kind != "offline" && out.kind != "replay")
    return unknown_name("device_class.kind", out.kind, {"cuda", "offline", "replay"});
  for (const auto& [field, value] : {std::pair{"sm_count", out.sm_count},
                                     {"memory_gb_per_s", out.memory_gb_per_s},
                                     {"power_cap_w", out.power_cap_w}})
    if (value < 0) return bad_input(std::string("device_class.") + field, std::to_string(value), "at least 0");
  return out;
}

}  // namespace tunerd
