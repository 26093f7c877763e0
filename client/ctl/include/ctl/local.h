// What a command that asks no daemon reads by itself: templates and device specs.
#pragma once

#include <string>
#include <vector>

#include "ctl/command.h"
#include "model/catalog.h"
#include "model/device.h"

namespace tunerd::ctl {

Result<Catalog> load_catalog(const Globals& globals);
Result<std::vector<DeviceSpec>> load_device_specs(const Globals& globals);
// By name, or the one that stands for an architecture. Exactly one of both must be given.
Result<DeviceSpec> choose_device(const Globals& globals, const std::string& name, const std::string& arch);

}  // namespace tunerd::ctl
