// Where the programs of this project look for data, the socket and the cache when nobody says otherwise. Every look-up
// is by environment first, then beside the running program, then the source tree that it was built from.
#pragma once

#include <filesystem>
#include <vector>

namespace tunerd {

// The folder of the running executable, links resolved; empty when the system does not say.
std::filesystem::path executable_folder();

// $TUNERD_TEMPLATES (folders separated by ':'), else <executable>/../share/tunerd/templates, else the source tree's.
// Never empty; that a folder exists is only promised for the second and third.
std::vector<std::filesystem::path> default_template_folders();

// $TUNERD_DEVICES, else <executable>/../share/tunerd/devices, else config/devices of the source tree.
std::filesystem::path default_devices_folder();

// $TUNERD_SOCKET, else $XDG_RUNTIME_DIR/tunerd/tunerd.sock, else /run/tunerd/tunerd.sock for root and
// /tmp/tunerd-<uid>/tunerd.sock for everyone else.
std::filesystem::path default_socket();

// $TUNERD_CACHE, else /var/cache/tunerd for root, else $XDG_CACHE_HOME/tunerd, else $HOME/.cache/tunerd, else
// /tmp/tunerd-<uid>/cache.
std::filesystem::path default_cache_folder();

}  // namespace tunerd
