#include "image.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "model/digest.h"

namespace tunerd::client {
namespace {

constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Unexpected bad_image(std::string message, std::string field, std::string value, std::string expected) {
  return Unexpected(
      Error{Code::corrupt, std::move(message), std::move(field), std::move(value), std::move(expected), {}});
}

std::string seal_names(int seals) {
  if (seals < 0) return "not a sealable file";
  std::string text;
  for (const auto& [bit, name] : {std::pair{F_SEAL_WRITE, "write"}, std::pair{F_SEAL_SHRINK, "shrink"},
                                  std::pair{F_SEAL_GROW, "grow"}, std::pair{F_SEAL_SEAL, "seal"}})
    if ((seals & bit) != 0) text += (text.empty() ? "" : "|") + std::string(name);
  return text.empty() ? "none" : text;
}

}  // namespace

Result<std::shared_ptr<Image>> Image::map(const Descriptor& memfd, const std::string& digest, std::int64_t bytes) {
  if (!memfd) return bad_image("the answer came without its cubin", "cubin", "no descriptor", "a sealed memfd");
  const int seals = ::fcntl(memfd.get(), F_GET_SEALS);
  if ((seals & kSeals) != kSeals || seals < 0)
    return bad_image("the cubin could still be changed by others", "seals", seal_names(seals),
                     "write|shrink|grow|seal");
  struct stat facts {};
  if (::fstat(memfd.get(), &facts) != 0) return fail(Code::io, std::string("fstat failed: ") + std::strerror(errno));
  if (facts.st_size != bytes || bytes <= 0 || bytes > kMaxCubinBytes)
    return bad_image("the cubin is not as long as the answer says", "cubin_bytes", std::to_string(facts.st_size),
                     std::to_string(bytes) + ", at most " + std::to_string(kMaxCubinBytes));
  const auto size = static_cast<std::size_t>(bytes);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, memfd.get(), 0);
  if (data == MAP_FAILED) return fail(Code::io, std::string("mmap of a cubin failed: ") + std::strerror(errno));
  std::shared_ptr<Image> image(new Image(data, size));
  if (const std::string actual = sha256_hex(image->bytes()); actual != digest)
    return bad_image("the cubin is not what the answer says", "kernel_digest", actual, digest);
  return image;
}

Image::~Image() {
  if (library_ != nullptr) driver_->cuLibraryUnload(library_);
  for (const Module& module : modules_) {
    if (driver_->cuCtxPushCurrent(module.context.handle) != 0) continue;  // the context went first, and took it along
    driver_->cuModuleUnload(module.module);
    cu::Context popped = nullptr;
    driver_->cuCtxPopCurrent(&popped);
  }
  ::munmap(const_cast<void*>(data_), size_);
}

Result<cu::Function> Image::load(const cu::Driver& driver, const cu::CurrentContext& context, const std::string& entry,
                                 const std::string& arch) {
  driver_ = &driver;
  const auto refused = [&](const char* call, int result) {
    auto error = driver.error(call, result);
    error.value().message += ": a cubin for " + arch + ", entry " + entry;
    return error;
  };
  cu::Function function = nullptr;
  if (driver.has_libraries()) {
    if (library_ == nullptr)
      if (const int result = driver.cuLibraryLoadData(&library_, data_, nullptr, nullptr, 0, nullptr, nullptr, 0);
          result != 0) {
        library_ = nullptr;
        return refused("cuLibraryLoadData", result);
      }
    cu::Kernel kernel = nullptr;
    if (const int result = driver.cuLibraryGetKernel(&kernel, library_, entry.c_str()); result != 0)
      return refused("cuLibraryGetKernel", result);
    if (const int result = driver.cuKernelGetFunction(&function, kernel); result != 0)
      return refused("cuKernelGetFunction", result);
    return function;
  }
  cu::Module module = nullptr;
  for (const Module& known : modules_)
    if (known.context == context) module = known.module;
  if (module == nullptr) {
    if (const int result = driver.cuModuleLoadData(&module, data_); result != 0)
      return refused("cuModuleLoadData", result);
    modules_.push_back({context, module});
  }
  if (const int result = driver.cuModuleGetFunction(&function, module, entry.c_str()); result != 0)
    return refused("cuModuleGetFunction", result);
  return function;
}

Result<cu::Function> Image::function(const cu::Driver& driver, const std::string& entry,
                                     std::int64_t dynamic_smem_bytes, bool wide_cluster, const std::string& arch) {
  TRY_ASSIGN(const cu::CurrentContext context, cu::current_context(driver));
  const std::lock_guard lock(mutex_);
  Loaded* loaded = nullptr;
  for (Loaded& known : functions_)
    if (known.context == context && known.entry == entry) loaded = &known;
  if (loaded != nullptr && loaded->dynamic_smem_bytes >= dynamic_smem_bytes && loaded->wide_cluster >= wide_cluster)
    return loaded->function;

  const cu::CaptureRelaxed relaxed(driver);
  if (loaded == nullptr) {
    TRY_ASSIGN(const cu::Function function, load(driver, context, entry, arch));
    loaded = &functions_.emplace_back(Loaded{context, entry, function, 0, false});
  }
  if (dynamic_smem_bytes > loaded->dynamic_smem_bytes) {
    // Above 48 KiB a launch is refused unless the function was told before.
    const int result =
        driver.cuFuncSetAttribute(loaded->function, cu::kMaxDynamicShared, static_cast<int>(dynamic_smem_bytes));
    if (result != 0) return driver.error("cuFuncSetAttribute(max dynamic shared memory)", result);
    loaded->dynamic_smem_bytes = dynamic_smem_bytes;
  }
  if (wide_cluster && !loaded->wide_cluster) {
    const int result = driver.cuFuncSetAttribute(loaded->function, cu::kNonPortableCluster, 1);
    if (result != 0) return driver.error("cuFuncSetAttribute(non-portable cluster)", result);
    loaded->wide_cluster = true;
  }
  return loaded->function;
}

Result<std::shared_ptr<Image>> ImageTable::map(const Descriptor& memfd, const std::string& digest, std::int64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = images_.find(digest); found != images_.end())
      if (auto image = found->second.lock()) return image;
  }
  TRY_ASSIGN(auto image, Image::map(memfd, digest, bytes));
  const std::lock_guard lock(mutex_);
  std::erase_if(images_, [](const auto& entry) { return entry.second.expired(); });
  auto& slot = images_[digest];
  if (auto other = slot.lock()) return other;
  slot = image;
  return image;
}

}  // namespace tunerd::client
