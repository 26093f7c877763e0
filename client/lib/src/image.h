// A cubin as it came from the daemon: sealed, digest-checked, mapped; and the functions loaded from it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cu.h"
#include "descriptor.h"

namespace tunerd::client {

inline constexpr std::int64_t kMaxCubinBytes = 256 << 20;

// Shared by every kernel with these bytes. Thread-safe.
class Image {
 public:
  // Code::corrupt when the memfd is not sealed against every change (field "seals"), is not `bytes` long
  // ("cubin_bytes") or its sha256 is not `digest` ("kernel_digest").
  static Result<std::shared_ptr<Image>> map(const Descriptor& memfd, const std::string& digest, std::int64_t bytes);
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  // Unloads what was loaded: no launch of it may be running.
  ~Image();

  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }
  // Loads in the current context when needed, allows `dynamic_smem_bytes` and, when `wide_cluster`, more than 8 blocks
  // a cluster. `arch` is for the error only.
  Result<cu::Function> function(const cu::Driver& driver, const std::string& entry, std::int64_t dynamic_smem_bytes,
                                bool wide_cluster, const std::string& arch);

 private:
  struct Loaded {
    cu::CurrentContext context;
    std::string entry;
    cu::Function function = nullptr;
    std::int64_t dynamic_smem_bytes = 0;
    bool wide_cluster = false;
  };
  struct Module {
    cu::CurrentContext context;
    cu::Module module = nullptr;
  };
  Image(const void* data, std::size_t size) : data_(data), size_(size) {}
  Result<cu::Function> load(const cu::Driver& driver, const cu::CurrentContext& context, const std::string& entry,
                            const std::string& arch);

  const void* data_;
  std::size_t size_;
  std::mutex mutex_;
  const cu::Driver* driver_ = nullptr;
  cu::Library library_ = nullptr;
  std::vector<Module> modules_;
  std::vector<Loaded> functions_;
};

// Images by digest, so that a cubin that serves many problems is mapped and loaded once.
class ImageTable {
 public:
  Result<std::shared_ptr<Image>> map(const Descriptor& memfd, const std::string& digest, std::int64_t bytes);

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Image>> images_;
};

}  // namespace tunerd::client
