// A shared library opened at run time; libcuda, libnvrtc and libnvidia-ml are never linked.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/result.h"

namespace tunerd::gpu {

class Library {
 public:
  // The first of `names` that opens, each looked for in $CUDA_HOME/lib64, /usr/local/cuda/lib64, then the loader's
  // path. Error (Code::missing): `what` and every name tried.
  static Result<Library> open(const std::string& what, const std::vector<std::string>& names);
  // Error (Code::missing) names the symbol and the library.
  Result<void*> symbol(const char* name) const;
  const std::string& path() const { return path_; }

  template <class Function>
  Status bind(Function& function, const char* name) const {
    TRY_ASSIGN(void* address, symbol(name));
    function = reinterpret_cast<Function>(address);
    return {};
  }

 private:
  std::shared_ptr<void> handle_;
  std::string path_;
};

}  // namespace tunerd::gpu
