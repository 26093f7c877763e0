// What, besides the device, a measurement depends on. In every key; a difference is a miss that names the field.
#pragma once

#include <string>
#include <vector>

#include "model/json_reader.h"

namespace tunerd {

inline constexpr int kMeasurementProtocol =
    1;  // raise it when timing or verification changes meaning (docs/measurement.md)

struct Environment {
  std::string nvrtc;   // "13.0"
  std::string driver;  // "580.159.04", or "none" without a GPU
  std::string flags;   // the fixed NVRTC options, joined by spaces
  int measurement_protocol = kMeasurementProtocol;

  std::string key() const;
  bool operator==(const Environment&) const = default;
};

// The NVRTC options every template is compiled with, before -D and --gpu-architecture.
const std::vector<std::string>& fixed_nvrtc_options();

Json to_json(const Environment& environment);
Result<Environment> environment_from_json(const Json& json);
// "nvrtc: 12.9 there, 13.0 here" for each field that differs.
std::vector<std::string> differences(const Environment& there, const Environment& here);

}  // namespace tunerd
