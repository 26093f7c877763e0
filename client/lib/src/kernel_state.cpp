#include "kernel_state.h"

#include <algorithm>

#include "wire/symbols.h"

namespace tunerd::client {
namespace {

constexpr std::size_t kMaxPrepared = 1024;  // sizes kept per kernel; past it the table starts anew

std::size_t mix(std::size_t seed, std::uint64_t value) {
  value ^= seed + 0x9E3779B97F4A7C15u + (seed << 6) + (seed >> 2);
  value ^= value >> 30;
  value *= 0xBF58476D1CE4E5B9u;
  value ^= value >> 27;
  return static_cast<std::size_t>(value);
}

std::size_t tensor_index(const Recipe& recipe, std::string_view name) {
  std::size_t i = 0;
  while (i < recipe.tensors.size() && recipe.tensors[i].name != name) ++i;
  return i;
}

std::vector<std::string> tensor_names(const Recipe& recipe) {
  std::vector<std::string> names;
  for (const RecipeTensor& tensor : recipe.tensors)
    if (tensor.present) names.push_back(tensor.name);
  return names;
}

std::string hex(std::uint64_t value) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  do {
    text.insert(text.begin(), digits[value & 15]);
  } while ((value >>= 4) != 0);
  return "0x" + text;
}

}  // namespace

std::size_t SizeHash::operator()(const SizeKey& key) const {
  std::size_t hash = key.count;
  for (std::size_t i = 0; i < key.count; ++i) hash = mix(hash, static_cast<std::uint64_t>(key.values[i]));
  return hash;
}

Result<std::unique_ptr<KernelState>> KernelState::make(wire::GetAnswer answer, std::shared_ptr<Image> image,
                                                       std::string json) {
  TRY(check_bounds(answer.recipe));
  std::unique_ptr<KernelState> state(new KernelState());
  const auto dims = answer.problem_json.find("dims");
  if (dims == answer.problem_json.end() || !dims->is_object())
    return Unexpected(
        Error{Code::corrupt, "an answer's problem has no dims", "problem_json.dims", "nothing", "an object", {}});
  if (dims->size() > kMaxDims)
    return bad_input("problem_json.dims", std::to_string(dims->size()), "at most " + std::to_string(kMaxDims));
  // Also checks the types of dims and strides.
  TRY_ASSIGN(const Symbols symbols, wire::recipe_symbols(answer.recipe, answer.problem_json));
  TRY_ASSIGN(state->dtype_, dtype_from_string(answer.problem_json.at("dtype").get<std::string>()));
  for (const auto& [name, value] : dims->items()) {
    state->dim_names_.push_back(name);
    state->own_sizes_.values[state->own_sizes_.count++] = value.get<std::int64_t>();
  }
  for (const RecipeTensor& tensor : answer.recipe.tensors) {
    const std::int64_t* stride = tensor.stride_symbol.empty() ? nullptr : symbols.find(tensor.stride_symbol);
    state->own_sizes_.values[state->own_sizes_.count++] = stride == nullptr ? 0 : *stride;
  }
  for (const Argument& argument : answer.recipe.arguments)
    state->slot_tensor_.push_back(tensor_index(answer.recipe, argument.name));
  state->answer_ = std::move(answer);
  state->image_ = std::move(image);
  state->json_ = std::move(json);
  TRY(state->prepared(state->own_sizes_));
  return state;
}

Status KernelState::override_dims(const tuner_dim* dims, std::size_t count, SizeKey& sizes) const {
  if (count > 0 && dims == nullptr) return bad_input("dims", "null", "an array of dim_count dims");
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view name = dims[i].name == nullptr ? std::string_view() : dims[i].name;
    const auto found = std::find(dim_names_.begin(), dim_names_.end(), name);
    if (found == dim_names_.end()) return unknown_name("dim", std::string(name), dim_names_);
    if (dims[i].value < 1) return bad_input("dim " + *found, std::to_string(dims[i].value), "1 or more");
    sizes.values[static_cast<std::size_t>(found - dim_names_.begin())] = dims[i].value;
  }
  // Another size has rows of its own: the problem's padding means nothing to it.
  const bool other =
      !std::equal(sizes.values.begin(), sizes.values.begin() + dim_names_.size(), own_sizes_.values.begin());
  if (other) std::fill(sizes.values.begin() + dim_names_.size(), sizes.values.begin() + sizes.count, 0);
  return {};
}

Result<Pointers> KernelState::pointers(const tuner_launch_args& args, SizeKey& sizes) const {
  const Recipe& recipe = answer_.recipe;
  if (args.tensor_count > 0 && args.tensors == nullptr)
    return bad_input("tensors", "null", "an array of tensor_count tensors");
  Pointers out{};
  std::array<bool, kMaxTensors> given{};
  for (std::size_t i = 0; i < args.tensor_count; ++i) {
    const tuner_tensor& tensor = args.tensors[i];
    const std::string_view name = tensor.name == nullptr ? std::string_view() : tensor.name;
    const std::size_t index = tensor_index(recipe, name);
    if (index == recipe.tensors.size()) return unknown_name("tensor", std::string(name), tensor_names(recipe));
    const RecipeTensor& wanted = recipe.tensors[index];
    if (given[index]) return bad_input("tensor " + wanted.name, "given twice", "each tensor once");
    given[index] = true;
    if (!wanted.present) {
      if (tensor.data == 0) continue;
      return bad_input("tensor " + wanted.name, hex(tensor.data), "null: this kernel was asked for without it");
    }
    if (tensor.data == 0) return bad_input("tensor " + wanted.name, "null", "a device pointer");
    if (tensor.data % static_cast<std::uint64_t>(wanted.align_bytes) != 0)
      return bad_input("tensor " + wanted.name, hex(tensor.data),
                       "a pointer aligned to " + std::to_string(wanted.align_bytes) + " bytes");
    if (tensor.row_stride != 0) {
      if (wanted.stride_symbol.empty())
        return bad_input("row_stride of tensor " + wanted.name, std::to_string(tensor.row_stride),
                         "0: only a tensor of rank 2 has one");
      if (tensor.row_stride < 0)
        return bad_input("row_stride of tensor " + wanted.name, std::to_string(tensor.row_stride), "0 or more");
      sizes.values[dim_names_.size() + index] = tensor.row_stride;
    }
    out[index] = tensor.data;
  }
  for (std::size_t i = 0; i < recipe.tensors.size(); ++i)
    if (recipe.tensors[i].present && !given[i])
      return bad_input("tensor " + recipe.tensors[i].name, "not given", "every tensor of the kernel");
  return out;
}

Result<KernelState::PreparedPtr> KernelState::prepared(const SizeKey& sizes) const {
  {
    const std::shared_lock lock(prepared_mutex_);
    if (const auto found = prepared_.find(sizes); found != prepared_.end()) return found->second;
  }
  std::map<std::string, std::int64_t> dims, strides;
  for (std::size_t i = 0; i < dim_names_.size(); ++i) dims[dim_names_[i]] = sizes.values[i];
  for (std::size_t i = 0; i < answer_.recipe.tensors.size(); ++i)
    if (const std::int64_t stride = sizes.values[dim_names_.size() + i]; stride != 0)
      strides[answer_.recipe.tensors[i].stride_symbol] = stride;
  TRY_ASSIGN(const Symbols symbols, wire::recipe_symbols(answer_.recipe, dims, strides, dtype_));
  TRY_ASSIGN(Prepared fresh, prepare(answer_.recipe, symbols));
  auto shared = std::make_shared<const Prepared>(std::move(fresh));
  const std::lock_guard lock(prepared_mutex_);
  if (prepared_.size() >= kMaxPrepared) prepared_.clear();
  return prepared_.try_emplace(sizes, std::move(shared)).first->second;
}

Result<KernelState::WorkspaceNeed> KernelState::workspace_need(const tuner_dim* dims, std::size_t count) const {
  SizeKey sizes = own_sizes_;
  TRY(override_dims(dims, count, sizes));
  TRY_ASSIGN(const PreparedPtr ready, prepared(sizes));
  WorkspaceNeed need{ready->workspace_bytes, ready->workspace_align_bytes, false};
  for (const PreparedWorkspace& workspace : ready->workspaces)
    need.zeroed = need.zeroed || workspace.init == PreparedWorkspace::Init::zero_once;
  return need;
}

Result<cu::Function> KernelState::function(const cu::Driver& driver) const {
  const Launch& launch = answer_.recipe.launch;
  const bool wide = launch.cluster[0] * launch.cluster[1] * launch.cluster[2] > 8;
  return image_->function(driver, answer_.recipe.entry, launch.dynamic_smem_bytes, wide, answer_.arch);
}

Status KernelState::load() const {
  TRY_ASSIGN(const cu::Driver* driver, cu::driver());
  TRY(function(*driver));
  return {};
}

bool KernelState::MapKey::operator==(const MapKey& other) const {
  return prepared == other.prepared && count == other.count &&
         std::equal(pointers.begin(), pointers.begin() + count, other.pointers.begin());
}

std::size_t KernelState::MapKeyHash::operator()(const MapKey& key) const {
  std::size_t hash = mix(key.count, reinterpret_cast<std::uintptr_t>(key.prepared));
  for (std::size_t i = 0; i < key.count; ++i) hash = mix(hash, key.pointers[i]);
  return hash;
}

}  // namespace tunerd::client
