#include "gpu/library.h"

#include <dlfcn.h>

#include <cstdlib>

namespace tunerd::gpu {

Result<Library> Library::open(const std::string& what, const std::vector<std::string>& names) {
  std::vector<std::string> folders;
  if (const char* home = std::getenv("CUDA_HOME"); home != nullptr && *home != '\0')
    folders.push_back(std::string(home) + "/lib64/");
  folders.emplace_back("/usr/local/cuda/lib64/");
  folders.emplace_back("");
  std::string tried;
  for (const auto& name : names) {
    for (const auto& folder : folders) {
      const std::string path = folder + name;
      if (void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        Library library;
        // Never closed: the drivers keep threads and exit handlers of their own.
        library.handle_ = std::shared_ptr<void>(handle, [](void*) {});
        library.path_ = path;
        return library;
      }
    }
    tried += (tried.empty() ? "" : ", ") + name;
  }
  Error error;
  error.code = Code::missing;
  error.message = what + " was not found: none of " + tried +
                  " opens from $CUDA_HOME/lib64, /usr/local/cuda/lib64 or the loader's path";
  error.field = what;
  error.expected = names.front();
  return Unexpected(std::move(error));
}

Result<void*> Library::symbol(const char* name) const {
  if (void* address = ::dlsym(handle_.get(), name)) return address;
  return fail(Code::missing, path_ + " has no symbol " + name + ": a newer version is needed");
}

}  // namespace tunerd::gpu
