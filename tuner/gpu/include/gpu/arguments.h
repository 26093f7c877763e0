// From a recipe, sizes and pointers to a launch: kernel parameters with their storage, tensor maps encoded, attributes
// set.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpu/driver.h"
#include "model/recipe.h"

namespace tunerd::gpu {

struct Pointers {
  std::map<std::string, CUdeviceptr> tensors;  // by name; absent ones missing
  CUdeviceptr workspace = 0;
};

// Holds the parameter block of one launch; keep it until the launch was issued. Parameters go as an array of pointers,
// never packed: where a tensor map lies in the block differs between architectures.
class LaunchPlan {
 public:
  // Errors: a check of the recipe fails, an expression fails, the driver refuses a tensor map (names the tensor and its
  // dims).
  static Result<LaunchPlan> make(const Device& device, CUfunction function, const Recipe& recipe,
                                 const Symbols& symbols, const Pointers& pointers,
                                 const std::map<std::string, double>& reals);
  Status launch(const Device& device) const;
  std::int64_t workspace_bytes() const { return concrete_.workspace_bytes; }

 private:
  union alignas(8) Scalar {
    CUdeviceptr pointer;
    std::int64_t i64;
    std::int32_t i32;
    float f32;
  };
  CUfunction function_ = nullptr;
  ConcreteLaunch concrete_;
  bool pdl_ = false;  // its start may overlap the end of the kernel before it
  bool cooperative_ = false;
  std::vector<Scalar> scalars_;
  struct alignas(128) Map {
    CUtensorMap map;
  };
  std::vector<std::unique_ptr<Map>> maps_;
  std::vector<void*> parameters_;
};

}  // namespace tunerd::gpu
