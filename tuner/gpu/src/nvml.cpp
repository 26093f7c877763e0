#include "gpu/nvml.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "gpu/library.h"
#include "nvml_abi.h"

namespace tunerd::gpu {
namespace {

constexpr long long kRecentUs = 2'000'000;

}  // namespace

struct Nvml::Impl {
  Library library;
  nvml::Handle device = nullptr;
  nvml::Init shutdown = nullptr;
  nvml::Text driver = nullptr;
  nvml::DeviceText name = nullptr;
  nvml::Selected clock = nullptr;
  nvml::Number power = nullptr;
  nvml::Number power_limit = nullptr;
  nvml::Selected temperature = nullptr;
  nvml::Bits throttle = nullptr;
  nvml::Processes processes = nullptr;
  nvml::Utilizations utilization = nullptr;
  nvml::Mig mig = nullptr;

  Status open(const std::string& pci_bus_id) {
    TRY_ASSIGN(library, Library::open("NVML", {"libnvidia-ml.so.1"}));
    nvml::Init init = nullptr;
    nvml::ByPci by_pci = nullptr;
    TRY(library.bind(init, "nvmlInit_v2"));
    TRY(library.bind(shutdown, "nvmlShutdown"));
    TRY(library.bind(by_pci, "nvmlDeviceGetHandleByPciBusId_v2"));
    TRY(library.bind(driver, "nvmlSystemGetDriverVersion"));
    TRY(library.bind(name, "nvmlDeviceGetName"));
    TRY(library.bind(clock, "nvmlDeviceGetClockInfo"));
    TRY(library.bind(power, "nvmlDeviceGetPowerUsage"));
    TRY(library.bind(power_limit, "nvmlDeviceGetEnforcedPowerLimit"));
    TRY(library.bind(temperature, "nvmlDeviceGetTemperature"));
    TRY(library.bind(throttle, "nvmlDeviceGetCurrentClocksThrottleReasons"));
    TRY(library.bind(processes, "nvmlDeviceGetComputeRunningProcesses_v3"));
    TRY(library.bind(utilization, "nvmlDeviceGetProcessUtilization"));
    TRY(library.bind(mig, "nvmlDeviceGetMigMode"));
    if (init() != nvml::kSuccess) return fail(Code::missing, "NVML does not start");
    if (by_pci(pci_bus_id.c_str(), &device) != nvml::kSuccess)
      return fail(Code::missing, "NVML does not know the device " + pci_bus_id);
    return {};
  }
};

Nvml::Nvml(const std::string& pci_bus_id) : impl_(std::make_unique<Impl>()) {
  if (auto opened = impl_->open(pci_bus_id); !opened) {
    error_ = opened.error().text();
    impl_->device = nullptr;
  }
}

Nvml::~Nvml() {
  if (impl_->device != nullptr) impl_->shutdown();
}

std::string Nvml::driver_version() const {
  char text[nvml::kTextBytes] = {};
  if (impl_->device == nullptr || impl_->driver(text, sizeof text) != nvml::kSuccess) return "unknown";
  return text;
}

std::string Nvml::product_name() const {
  char text[nvml::kTextBytes] = {};
  if (impl_->device == nullptr || impl_->name(impl_->device, text, sizeof text) != nvml::kSuccess) return {};
  return text;
}

std::int64_t Nvml::power_cap_w() const {
  unsigned int milliwatts = 0;
  if (impl_->device == nullptr || impl_->power_limit(impl_->device, &milliwatts) != nvml::kSuccess) return 0;
  return milliwatts / 1000;
}

bool Nvml::mig_enabled() const {
  unsigned int current = 0, pending = 0;
  return impl_->device != nullptr && impl_->mig(impl_->device, &current, &pending) == nvml::kSuccess &&
         current == nvml::kMigEnabled;
}

Json Nvml::state() const {
  Json state = Json::object();
  if (impl_->device == nullptr) return state;
  unsigned int value = 0;
  if (impl_->clock(impl_->device, nvml::kClockSm, &value) == nvml::kSuccess) state["sm_clock_mhz"] = value;
  if (impl_->clock(impl_->device, nvml::kClockMemory, &value) == nvml::kSuccess) state["memory_clock_mhz"] = value;
  if (impl_->power(impl_->device, &value) == nvml::kSuccess) state["power_w"] = value / 1000.0;
  if (impl_->temperature(impl_->device, nvml::kTemperatureGpu, &value) == nvml::kSuccess)
    state["temperature_c"] = value;
  unsigned long long reasons = 0;
  if (impl_->throttle(impl_->device, &reasons) == nvml::kSuccess) {
    static constexpr std::array<std::pair<unsigned long long, const char*>, 6> kWords{{
        {nvml::kSwPowerCap, "power_cap"},
        {nvml::kHwSlowdown, "hw_slowdown"},
        {nvml::kSwThermal, "thermal"},
        {nvml::kHwThermal, "hw_thermal"},
        {nvml::kPowerBrake, "power_brake"},
        {nvml::kSyncBoost, "sync_boost"},
    }};
    Json words = Json::array();
    for (const auto& [bit, word] : kWords)
      if ((reasons & bit) != 0) words.push_back(word);
    state["throttle"] = words;
  }
  std::array<nvml::ProcessInfo, 64> infos{};
  unsigned int count = infos.size();
  if (impl_->processes(impl_->device, &count, infos.data()) == nvml::kSuccess) {
    // How busy each was over the last seconds; a process that only holds a context (an application that uses our
    // kernels) does not disturb.
    std::array<nvml::Utilization, 128> busy{};
    unsigned int samples = busy.size();
    const auto now_us =
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count();
    const auto asked =
        impl_->utilization(impl_->device, busy.data(), &samples, static_cast<unsigned long long>(now_us - kRecentUs));
    const bool known = asked == nvml::kSuccess || asked == nvml::kNotFound;  // not found: nobody computed
    if (asked != nvml::kSuccess) samples = 0;
    Json foreign = Json::array();
    for (unsigned int i = 0; i < count && i < infos.size(); ++i) {
      if (infos[i].pid == static_cast<unsigned int>(::getpid())) continue;
      unsigned int percent = 0;
      for (unsigned int j = 0; j < samples && j < busy.size(); ++j)
        if (busy[j].pid == infos[i].pid) percent = std::max(percent, busy[j].sm_percent);
      foreign.push_back({{"pid", infos[i].pid}, {"sm_percent", known ? Json(percent) : Json()}});
    }
    state["foreign_processes"] = foreign;
  }
  return state;
}

std::string taint_of(const Json& before, const Json& after) {
  for (const Json* state : {&before, &after}) {
    if (const auto found = state->find("foreign_processes"); found != state->end() && found->is_array())
      for (const auto& process : *found)  // unknown counts as busy
        if (!process["sm_percent"].is_number() || process["sm_percent"].get<int>() > 0)
          return "another process computes on the device: pid " + process["pid"].dump();
    if (const auto found = state->find("throttle"); found != state->end())
      for (const auto& word : *found)
        if (word != "power_cap" && word != "sync_boost") return "the device is throttled: " + word.get<std::string>();
  }
  return {};
}

}  // namespace tunerd::gpu
