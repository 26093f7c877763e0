#include "ctl/local.h"

#include "model/paths.h"

namespace tunerd::ctl {

Result<Catalog> load_catalog(const Globals& globals) {
  std::vector<std::filesystem::path> folders = default_template_folders();
  for (const std::string& folder : globals.templates) {
    if (!std::filesystem::is_directory(folder)) return bad_input("--templates", folder, "a folder");
    std::error_code ignored;
    bool there = false;
    for (const auto& known : folders) there = there || std::filesystem::equivalent(known, folder, ignored);
    if (!there) folders.emplace_back(folder);
  }
  return Catalog::load(folders);
}

Result<std::vector<DeviceSpec>> load_device_specs(const Globals& globals) {
  return load_devices(globals.devices.empty() ? default_devices_folder() : std::filesystem::path(globals.devices));
}

Result<DeviceSpec> choose_device(const Globals& globals, const std::string& name, const std::string& arch) {
  if (name.empty() == arch.empty()) {
    return bad_input("--device and --arch", name.empty() ? "neither" : "both",
                     "one of them: --device h200-sxm, or --arch sm_90a");
  }
  TRY_ASSIGN(const std::vector<DeviceSpec> devices, load_device_specs(globals));
  return name.empty() ? representative_device(devices, arch) : find_device(devices, name);
}

}  // namespace tunerd::ctl
