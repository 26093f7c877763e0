#include <algorithm>

#include "gpu/device.h"
#include "gpu/timer.h"

namespace tunerd::gpu {
namespace {

struct Recorded {
  std::string status;
  std::vector<double> samples_us;
  double median_us = 0;
  bool tainted = false;
};

class ReplayDevice final : public MeasureDevice {
 public:
  Status add(const std::filesystem::path& file) {
    TRY_ASSIGN(const Json document, read_json_file(file));
    JsonReader reader(document, file.filename().string());
    TRY_ASSIGN(const auto format, reader.integer("format"));
    if (format != 1) return bad_input(reader.path() + ".format", std::to_string(format), "1");
    for (const char* known : {"recorded_at", "commit", "device", "driver", "device_memory", "power_limit"})
      reader.any(known);
    TRY_ASSIGN(const Json* device_class, reader.object("device_class"));
    TRY_ASSIGN(auto recorded_class, device_class_from_json(*device_class));
    recorded_class.kind = "replay";
    if (!problems_.empty() && !(recorded_class == class_))
      return bad_input(reader.path() + ".device_class", recorded_class.key(),
                       class_.key() + ", as the other recordings");
    class_ = recorded_class;
    TRY_ASSIGN(const Json* environment, reader.object("environment"));
    JsonReader environment_reader(*environment, reader.path() + ".environment");
    TRY_ASSIGN(driver_, environment_reader.string("driver"));
    TRY_ASSIGN(product_name_, reader.string_or("device", ""));
    TRY_ASSIGN(const Json* problems, reader.object("problems"));
    for (const auto& [problem, variants] : problems->items()) {
      if (!variants.is_object()) return bad_input(reader.path() + ".problems", problem, "an object of variants");
      for (const auto& [variant, json] : variants.items()) {
        JsonReader entry(json, reader.path() + "." + variant);
        Recorded recorded;
        TRY_ASSIGN(recorded.status, entry.string("status"));
        TRY_ASSIGN(recorded.median_us, entry.number("median_us"));
        TRY_ASSIGN(recorded.tainted, entry.boolean_or("tainted", false));
        TRY_ASSIGN(const Json* samples, entry.array("samples_us"));
        for (const auto& sample : *samples) {
          if (!sample.is_number())
            return bad_input(reader.path() + "." + variant + ".samples_us", sample.dump(), "numbers");
          recorded.samples_us.push_back(sample.get<double>());
        }
        TRY(entry.finish());
        problems_[problem][variant] = std::move(recorded);
      }
    }
    return reader.finish();
  }

  wire::WorkerHello hello() const override {
    wire::WorkerHello hello;
    hello.role = "measure";
    hello.device_kind = "replay";
    hello.product_name = product_name_;
    hello.driver = driver_;
    hello.device_class = class_;
    return hello;
  }

  wire::MeasureResult run(const wire::MeasureJob& job) override {
    wire::MeasureResult result;
    result.id = job.id;
    const auto problem = problems_.find(job.problem_key);
    const Recorded* recorded = nullptr;
    if (problem != problems_.end())
      if (const auto found = problem->second.find(job.variant); found != problem->second.end())
        recorded = &found->second;
    if (recorded == nullptr) {
      result.status = "unsupported";
      result.error = "not recorded: " + job.variant + " on " + job.problem_key;
      return result;
    }
    result.status = recorded->status;
    result.samples_us = recorded->samples_us;
    result.median_us = recorded->median_us;
    result.tainted = recorded->tainted;
    if (recorded->tainted) result.taint = "tainted when it was recorded";
    if (result.status != "ok")
      result.error = "recorded as " + result.status;
    else
      result.gates.push_back({"recorded", true, "passed every gate when it was recorded"});
    return result;
  }

  bool empty() const { return problems_.empty(); }

 private:
  DeviceClass class_;
  std::string driver_, product_name_;
  std::map<std::string, std::map<std::string, Recorded>> problems_;
};

}  // namespace

Result<std::unique_ptr<MeasureDevice>> open_replay_device(const std::filesystem::path& recording) {
  auto device = std::make_unique<ReplayDevice>();
  std::vector<std::filesystem::path> files;
  std::error_code error;
  if (std::filesystem::is_directory(recording, error)) {
    for (const auto& entry : std::filesystem::directory_iterator(recording, error))
      if (entry.path().string().ends_with(".recording.json")) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
  } else {
    files.push_back(recording);
  }
  for (const auto& file : files) TRY(device->add(file));
  if (device->empty())
    return bad_input("recording", recording.string(), "a recording, or a folder of *.recording.json");
  return std::unique_ptr<MeasureDevice>(std::move(device));
}

}  // namespace tunerd::gpu
