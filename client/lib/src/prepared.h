// A recipe evaluated for one size: everything of a launch but the pointers.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cu.h"
#include "model/recipe.h"

namespace tunerd::client {

// What a kernel may have at most; a recipe past it is refused when the kernel is received.
inline constexpr std::size_t kMaxTensors = 32;
inline constexpr std::size_t kMaxDims = 24;
inline constexpr std::size_t kMaxArguments = 64;

struct PreparedMap {
  std::size_t argument = 0;  // index among the recipe's arguments
  std::size_t tensor = 0;    // index among the recipe's tensors
  int type = 0, swizzle = 0, l2_promotion = 0;
  std::uint32_t rank = 0;
  std::array<std::uint64_t, 5> dims{};
  std::array<std::uint64_t, 4> strides{};
  std::array<std::uint32_t, 5> box{};
};

struct PreparedWorkspace {
  std::size_t argument = 0;
  std::int64_t bytes = 0;
  std::int64_t align_bytes = 256;
  enum class Init { none, zero_once, zero_each } init = Init::none;
};

struct Prepared {
  ConcreteLaunch launch;
  std::array<std::uint64_t, kMaxArguments> slots{};  // scalars of i32 and i64, ready; others filled at the launch
  std::vector<PreparedMap> maps;
  std::vector<PreparedWorkspace> workspaces;
  // Of a caller's workspace that holds all of them in order.
  std::int64_t workspace_bytes = 0, workspace_align_bytes = 1;
};

// Ok when the recipe stays inside the bounds above and names only its own tensors.
Status check_bounds(const Recipe& recipe);
// Errors: a check of the recipe fails; a scalar does not fit its type; a tensor map outside what the hardware takes
// (each names its field).
Result<Prepared> prepare(const Recipe& recipe, const Symbols& symbols);

}  // namespace tunerd::client
