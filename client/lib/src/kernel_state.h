// One answer of the daemon, made launchable: never changes once made, but for its caches. An upgrade is another state.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "image.h"
#include "prepared.h"
#include "tuner.h"
#include "wire/messages.h"

namespace tunerd::client {

// The sizes of one launch: dims in the problem's order, then a row stride for each tensor of the recipe (0: none).
struct SizeKey {
  std::array<std::int64_t, kMaxDims + kMaxTensors> values{};
  std::size_t count = 0;
  bool operator==(const SizeKey& other) const {
    return count == other.count && std::equal(values.begin(), values.begin() + count, other.values.begin());
  }
};
struct SizeHash {
  std::size_t operator()(const SizeKey& key) const;
};

// Pointers by recipe tensor; with these a tensor map is ready to use again.
using Pointers = std::array<std::uint64_t, kMaxTensors>;

class KernelState {
 public:
  // Takes the answer with its cubin. Errors: a recipe past the bounds of prepared.h, a problem without dims, or sizes
  // for which the recipe does not evaluate.
  static Result<std::unique_ptr<KernelState>> make(wire::GetAnswer answer, std::shared_ptr<Image> image,
                                                   std::string json);
  KernelState(const KernelState&) = delete;
  KernelState& operator=(const KernelState&) = delete;
  ~KernelState();  // frees workspaces: no launch may be running

  const wire::GetAnswer& answer() const { return answer_; }
  const std::string& json() const { return json_; }
  const Image& image() const { return *image_; }

  // tuner_launch, tuner_kernel_load and tuner_kernel_workspace.
  Status launch(void* stream, const tuner_launch_args& args) const;
  Status load() const;
  struct WorkspaceNeed {
    std::int64_t bytes = 0, align_bytes = 1;
    bool zeroed = false;
  };
  Result<WorkspaceNeed> workspace_need(const tuner_dim* dims, std::size_t count) const;

 private:
  using PreparedPtr = std::shared_ptr<const Prepared>;
  using MapsPtr = std::shared_ptr<const std::vector<cu::TensorMap>>;
  struct MapKey {
    const Prepared* prepared;
    Pointers pointers;
    std::size_t count;
    bool operator==(const MapKey& other) const;
  };
  struct MapKeyHash {
    std::size_t operator()(const MapKey& key) const;
  };
  struct MapEntry {
    PreparedPtr prepared;  // keeps the key's address from being used again
    MapsPtr maps;
  };
  // The library's own workspace of one argument, stream and context. Blocks that became too small stay until the end,
  // because launches that use them may still be running.
  struct Block {
    std::uint64_t base = 0, data = 0;
    std::int64_t bytes = 0;
    bool zeroed = false;
  };
  struct BlockKey {
    std::size_t argument;
    void* stream;
    void* context;
    unsigned long long context_id;
    auto operator<=>(const BlockKey&) const = default;
  };

  KernelState() = default;
  Result<Pointers> pointers(const tuner_launch_args& args, SizeKey& sizes) const;
  Status override_dims(const tuner_dim* dims, std::size_t count, SizeKey& sizes) const;
  Result<PreparedPtr> prepared(const SizeKey& sizes) const;
  Result<MapsPtr> tensor_maps(const cu::Driver& driver, const PreparedPtr& prepared, const Pointers& pointers) const;
  Status fill_reals(const tuner_launch_args& args, std::array<std::uint64_t, kMaxArguments>& slots) const;
  Status fill_workspaces(const cu::Driver& driver, const Prepared& prepared, void* stream,
                         const tuner_launch_args& args, std::array<std::uint64_t, kMaxArguments>& slots) const;
  Result<std::uint64_t> own_workspace(const cu::Driver& driver, const cu::CurrentContext& context, void* stream,
                                      const PreparedWorkspace& workspace) const;
  Result<cu::Function> function(const cu::Driver& driver) const;

  wire::GetAnswer answer_;
  std::string json_;
  std::shared_ptr<Image> image_;
  std::vector<std::string> dim_names_;  // sorted
  DType dtype_ = DType::bf16;
  SizeKey own_sizes_;                     // the problem's
  std::vector<std::size_t> slot_tensor_;  // recipe tensor of each tensor argument, by argument index

  mutable std::shared_mutex prepared_mutex_;
  mutable std::unordered_map<SizeKey, PreparedPtr, SizeHash> prepared_;
  mutable std::shared_mutex maps_mutex_;
  mutable std::unordered_map<MapKey, MapEntry, MapKeyHash> maps_;
  mutable std::mutex blocks_mutex_;
  mutable std::map<BlockKey, Block> blocks_;
  mutable std::vector<std::pair<void*, std::uint64_t>> outgrown_;  // context, base
  mutable const cu::Driver* driver_ = nullptr;
};

}  // namespace tunerd::client
