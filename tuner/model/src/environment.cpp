#include "model/environment.h"

namespace tunerd {

const std::vector<std::string>& fixed_nvrtc_options() {
  static const std::vector<std::string> options{"-std=c++20", "-default-device", "--ptxas-options=-v",
                                                "--extra-device-vectorization"};
  return options;
}

std::string Environment::key() const {
  return "nvrtc=" + nvrtc + ";driver=" + driver + ";protocol=" + std::to_string(measurement_protocol) +
         ";flags=" + flags;
}

Json to_json(const Environment& environment) {
  return {{"nvrtc", environment.nvrtc},
          {"driver", environment.driver},
          {"flags", environment.flags},
          {"measurement_protocol", environment.measurement_protocol}};
}

Result<Environment> environment_from_json(const Json& json) {
  JsonReader reader(json, "environment");
  Environment out;
  TRY_ASSIGN(out.nvrtc, reader.string("nvrtc"));
  TRY_ASSIGN(out.driver, reader.string("driver"));
  TRY_ASSIGN(out.flags, reader.string("flags"));
  TRY_ASSIGN(const auto protocol, reader.integer("measurement_protocol"));
  if (protocol < 0 || protocol > 1'000'000)
    return bad_input("environment.measurement_protocol", std::to_string(protocol), "from 0 to 1000000");
  out.measurement_protocol = static_cast<int>(protocol);
  TRY(reader.finish());
  return out;
}

std::vector<std::string> differences(const Environment& there, const Environment& here) {
  std::vector<std::string> out;
  const auto compare = [&](const char* field, const std::string& a, const std::string& b) {
    if (a != b) out.push_back(std::string(field) + ": " + a + " there, " + b + " here");
  };
  compare("nvrtc", there.nvrtc, here.nvrtc);
  compare("driver", there.driver, here.driver);
  compare("flags", there.flags, here.flags);
  compare("measurement_protocol", std::to_string(there.measurement_protocol),
          std::to_string(here.measurement_protocol));
  return out;
}

}  // namespace tunerd
