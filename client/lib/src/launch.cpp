// KernelState's launch: order matters, everything that can be refused on the host is refused before the driver is
// opened.
#include <algorithm>
#include <bit>
#include <cmath>

#include "kernel_state.h"

namespace tunerd::client {
namespace {

constexpr std::size_t kMaxMapSets = 1024;        // pointer sets kept per kernel
constexpr std::int64_t kDeviceAlignBytes = 256;  // cuMemAlloc promises it

std::uint64_t align_up(std::uint64_t value, std::int64_t align) {
  const auto unit = static_cast<std::uint64_t>(align);
  return (value + unit - 1) / unit * unit;
}

}  // namespace

Status KernelState::fill_reals(const tuner_launch_args& args, std::array<std::uint64_t, kMaxArguments>& slots) const {
  if (args.real_count > 0 && args.reals == nullptr) return bad_input("reals", "null", "an array of real_count reals");
  const auto& arguments = answer_.recipe.arguments;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].kind == Argument::Kind::scalar && arguments[i].type == "f32")
      slots[i] = std::bit_cast<std::uint32_t>(static_cast<float>(arguments[i].real_default));
  for (std::size_t k = 0; k < args.real_count; ++k) {
    const std::string_view name = args.reals[k].name == nullptr ? std::string_view() : args.reals[k].name;
    bool known = false;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].kind != Argument::Kind::scalar || arguments[i].type != "f32" || arguments[i].real != name)
        continue;
      known = true;
      const auto value = static_cast<float>(args.reals[k].value);
      if (!std::isfinite(value))
        return bad_input("real " + std::string(name), std::to_string(args.reals[k].value), "a finite fp32 number");
      slots[i] = std::bit_cast<std::uint32_t>(value);
    }
    if (!known) {
      std::vector<std::string> names;
      for (const Argument& argument : arguments)
        if (argument.kind == Argument::Kind::scalar && argument.type == "f32") names.push_back(argument.real);
      return unknown_name("real", std::string(name), names);
    }
  }
  return {};
}

Result<KernelState::MapsPtr> KernelState::tensor_maps(const cu::Driver& driver, const PreparedPtr& prepared,
                                                      const Pointers& pointers) const {
  const MapKey key{prepared.get(), pointers, answer_.recipe.tensors.size()};
  {
    const std::shared_lock lock(maps_mutex_);
    if (const auto found = maps_.find(key); found != maps_.end()) return found->second.maps;
  }
  auto maps = std::make_shared<std::vector<cu::TensorMap>>(prepared->maps.size());
  constexpr std::uint32_t steps[5] = {1, 1, 1, 1, 1};
  for (std::size_t i = 0; i < prepared->maps.size(); ++i) {
    const PreparedMap& map = prepared->maps[i];
    const int result = driver.cuTensorMapEncodeTiled(
        &(*maps)[i], map.type, map.rank, reinterpret_cast<void*>(pointers[map.tensor]), map.dims.data(),
        map.strides.data(), map.box.data(), steps, 0, map.swizzle, map.l2_promotion, 0);
    if (result != 0) {
      auto error = driver.error("cuTensorMapEncodeTiled", result);
      error.value().message += ": tensor map of " + answer_.recipe.tensors[map.tensor].name;
      return error;
    }
  }
  const std::lock_guard lock(maps_mutex_);
  if (maps_.size() >= kMaxMapSets) maps_.clear();
  return maps_.try_emplace(key, MapEntry{prepared, std::move(maps)}).first->second.maps;
}

Result<std::uint64_t> KernelState::own_workspace(const cu::Driver& driver, const cu::CurrentContext& context,
                                                 void* stream, const PreparedWorkspace& workspace) const {
  const std::lock_guard lock(blocks_mutex_);
  driver_ = &driver;
  Block& block = blocks_[BlockKey{workspace.argument, stream, context.handle, context.id}];
  if (block.bytes < workspace.bytes) {
    // Doubling bounds what the outgrown blocks hold by what the last one does.
    const std::int64_t bytes = std::max(workspace.bytes, 2 * block.bytes);
    const std::int64_t slack = workspace.align_bytes > kDeviceAlignBytes ? workspace.align_bytes : 0;
    std::uint64_t base = 0;
    const cu::CaptureRelaxed relaxed(driver);
    if (const int result = driver.cuMemAlloc(&base, static_cast<std::size_t>(bytes + slack)); result != 0) {
      auto error = driver.error("cuMemAlloc", result);
      error.value().message += ": a workspace of " + std::to_string(bytes + slack) + " bytes";
      return error;
    }
    if (block.base != 0) outgrown_.emplace_back(context.handle, block.base);
    block = Block{base, align_up(base, workspace.align_bytes), bytes, false};
  }
  const bool once = workspace.init == PreparedWorkspace::Init::zero_once;
  if (workspace.init == PreparedWorkspace::Init::zero_each || (once && !block.zeroed)) {
    const std::int64_t bytes = once ? block.bytes : workspace.bytes;
    if (const int result = driver.cuMemsetD8Async(block.data, 0, static_cast<std::size_t>(bytes), stream); result != 0)
      return driver.error("cuMemsetD8Async", result);
    // In a capture the clearing happens when the graph runs, so it does not count for launches outside it.
    int capturing = 0;
    if (once && driver.cuStreamIsCapturing(stream, &capturing) == 0 && capturing == 0) block.zeroed = true;
  }
  return block.data;
}

Status KernelState::fill_workspaces(const cu::Driver& driver, const Prepared& prepared, void* stream,
                                    const tuner_launch_args& args,
                                    std::array<std::uint64_t, kMaxArguments>& slots) const {
  if (prepared.workspaces.empty()) return {};
  TRY_ASSIGN(const cu::CurrentContext context, cu::current_context(driver));
  std::uint64_t at = args.workspace;
  for (const PreparedWorkspace& workspace : prepared.workspaces) {
    if (workspace.bytes == 0) continue;  // null: the kernel does not touch it
    if (args.workspace == 0) {
      TRY_ASSIGN(slots[workspace.argument], own_workspace(driver, context, stream, workspace));
      continue;
    }
    at = align_up(at, workspace.align_bytes);
    slots[workspace.argument] = at;
    if (workspace.init == PreparedWorkspace::Init::zero_each)
      if (const int result = driver.cuMemsetD8Async(at, 0, static_cast<std::size_t>(workspace.bytes), stream);
          result != 0)
        return driver.error("cuMemsetD8Async", result);
    at += static_cast<std::uint64_t>(workspace.bytes);
  }
  return {};
}

Status KernelState::launch(void* stream, const tuner_launch_args& args) const {
  const Recipe& recipe = answer_.recipe;
  SizeKey sizes = own_sizes_;
  TRY(override_dims(args.dims, args.dim_count, sizes));
  TRY_ASSIGN(const Pointers pointers_by_tensor, pointers(args, sizes));
  TRY_ASSIGN(const PreparedPtr ready, prepared(sizes));
  std::array<std::uint64_t, kMaxArguments> slots = ready->slots;
  TRY(fill_reals(args, slots));
  for (const PreparedMap& map : ready->maps)
    if (pointers_by_tensor[map.tensor] % 16 != 0)
      return bad_input("tensor " + recipe.tensors[map.tensor].name, std::to_string(pointers_by_tensor[map.tensor]),
                       "a pointer aligned to 16 bytes: it is read through a tensor map");
  if (args.workspace != 0) {
    if (args.workspace_bytes < ready->workspace_bytes)
      return bad_input("workspace_bytes", std::to_string(args.workspace_bytes),
                       "at least " + std::to_string(ready->workspace_bytes));
    if (args.workspace % static_cast<std::uint64_t>(ready->workspace_align_bytes) != 0)
      return bad_input("workspace", std::to_string(args.workspace),
                       "a pointer aligned to " + std::to_string(ready->workspace_align_bytes) + " bytes");
  }

  TRY_ASSIGN(const cu::Driver* driver, cu::driver());
  TRY_ASSIGN(const cu::Function kernel, function(*driver));
  TRY(fill_workspaces(*driver, *ready, stream, args, slots));
  MapsPtr maps;
  if (!ready->maps.empty()) {
    TRY_ASSIGN(maps, tensor_maps(*driver, ready, pointers_by_tensor));
  }
  std::array<void*, kMaxArguments> parameters{};
  for (std::size_t i = 0; i < recipe.arguments.size(); ++i) {
    if (recipe.arguments[i].kind == Argument::Kind::tensor) slots[i] = pointers_by_tensor[slot_tensor_[i]];
    parameters[i] = &slots[i];
  }
  const cu::TensorMap absent{};
  for (std::size_t i = 0; i < recipe.arguments.size(); ++i)
    if (recipe.arguments[i].kind == Argument::Kind::tensor_map) parameters[i] = const_cast<cu::TensorMap*>(&absent);
  for (std::size_t i = 0; i < ready->maps.size(); ++i)
    parameters[ready->maps[i].argument] = const_cast<cu::TensorMap*>(&(*maps)[i]);

  std::array<cu::LaunchAttribute, 3> attributes{};
  cu::LaunchConfig config;
  const auto add_flag = [&](int id) {
    attributes[config.attribute_count].id = id;
    attributes[config.attribute_count++].value.flag = 1;
  };
  const auto& cluster = ready->launch.cluster;
  if (cluster[0] * cluster[1] * cluster[2] > 1) {
    cu::LaunchAttribute& attribute = attributes[config.attribute_count++];
    attribute.id = cu::kAttributeCluster;
    attribute.value.cluster = {static_cast<unsigned>(cluster[0]), static_cast<unsigned>(cluster[1]),
                               static_cast<unsigned>(cluster[2])};
  }
  if (recipe.launch.pdl && (args.flags & TUNER_NO_PDL) == 0) add_flag(cu::kAttributePdl);
  if (recipe.launch.cooperative) add_flag(cu::kAttributeCooperative);
  config.grid_x = static_cast<unsigned>(ready->launch.grid[0]);
  config.grid_y = static_cast<unsigned>(ready->launch.grid[1]);
  config.grid_z = static_cast<unsigned>(ready->launch.grid[2]);
  config.block_x = static_cast<unsigned>(ready->launch.block[0]);
  config.block_y = static_cast<unsigned>(ready->launch.block[1]);
  config.block_z = static_cast<unsigned>(ready->launch.block[2]);
  config.shared_bytes = static_cast<unsigned>(ready->launch.dynamic_smem_bytes);
  config.stream = stream;
  config.attributes = attributes.data();
  if (const int result = driver->cuLaunchKernelEx(&config, kernel, parameters.data(), nullptr); result != 0) {
    auto error = driver->error("cuLaunchKernelEx", result);
    error.value().message += ": " + answer_.variant;
    return error;
  }
  return {};
}

KernelState::~KernelState() {
  const auto free_in = [&](void* context, std::uint64_t base) {
    if (base == 0 || driver_->cuCtxPushCurrent(context) != 0) return;  // a destroyed context took its memory along
    driver_->cuMemFree(base);
    cu::Context popped = nullptr;
    driver_->cuCtxPopCurrent(&popped);
  };
  for (const auto& [key, block] : blocks_) free_in(key.context, block.base);
  for (const auto& [context, base] : outgrown_) free_in(context, base);
}

}  // namespace tunerd::client
