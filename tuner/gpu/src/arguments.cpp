#include "gpu/arguments.h"

#include <algorithm>

namespace tunerd::gpu {
namespace {

Result<CUtensorMapDataType> data_type(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case DType::fp16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DType::fp32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case DType::fp64:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
    case DType::int32:
      return CU_TENSOR_MAP_DATA_TYPE_INT32;
  }
  return fail(Code::internal, "No tensor-map type for this dtype");
}

CUtensorMapSwizzle swizzle(const std::string& text) {
  if (text == "32B") return CU_TENSOR_MAP_SWIZZLE_32B;
  if (text == "64B") return CU_TENSOR_MAP_SWIZZLE_64B;
  if (text == "128B") return CU_TENSOR_MAP_SWIZZLE_128B;
  return CU_TENSOR_MAP_SWIZZLE_NONE;
}

CUtensorMapL2promotion promotion(const std::string& text) {
  if (text == "64B") return CU_TENSOR_MAP_L2_PROMOTION_L2_64B;
  if (text == "128B") return CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
  if (text == "256B") return CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
  return CU_TENSOR_MAP_L2_PROMOTION_NONE;
}

Status encode(const Device& device, const Argument& argument, const Symbols& symbols, CUdeviceptr base,
              CUtensorMap* out) {
  const TensorMap& map = argument.map;
  std::array<cuuint64_t, 5> dims{}, strides{};
  std::array<cuuint32_t, 5> box{}, steps{1, 1, 1, 1, 1};
  const std::size_t rank = map.dims.size();
  if (rank < 1 || rank > 5 || map.box.size() != rank || map.strides_bytes.size() + 1 != rank)
    return bad_input("tensor_map." + argument.name, std::to_string(rank) + " dims",
                     "1 to 5 dims, as many box extents, one stride fewer");
  std::string shown;
  for (std::size_t i = 0; i < rank; ++i) {
    TRY_ASSIGN(const auto extent, map.dims[i].eval(symbols));
    dims[i] = static_cast<cuuint64_t>(extent);
    box[i] = static_cast<cuuint32_t>(map.box[i]);
    if (i + 1 < rank) {
      TRY_ASSIGN(const auto stride, map.strides_bytes[i].eval(symbols));
      strides[i] = static_cast<cuuint64_t>(stride);
    }
    shown += (i ? "x" : "") + std::to_string(extent);
  }
  TRY_ASSIGN(const auto type, data_type(map.dtype));
  return device.check(
      device.api().encode_tiled(out, type, static_cast<cuuint32_t>(rank), reinterpret_cast<void*>(base), dims.data(),
                                strides.data(), box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
                                swizzle(map.swizzle), promotion(map.l2_promotion), CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
      ("Encoding the tensor map of " + argument.name + " (" + shown + ")").c_str());
}

}  // namespace

Result<LaunchPlan> LaunchPlan::make(const Device& device, CUfunction function, const Recipe& recipe,
                                    const Symbols& symbols, const Pointers& pointers,
                                    const std::map<std::string, double>& reals) {
  LaunchPlan plan;
  plan.function_ = function;
  // After a workspace was cleared there is no kernel to overlap with.
  plan.pdl_ =
      recipe.launch.pdl && std::none_of(recipe.arguments.begin(), recipe.arguments.end(), [](const Argument& argument) {
        return argument.kind == Argument::Kind::workspace && argument.init == "zero_each";
      });
  plan.cooperative_ = recipe.launch.cooperative;
  TRY_ASSIGN(plan.concrete_, concrete_launch(recipe, symbols));
  plan.scalars_.reserve(recipe.arguments.size());  // parameters_ points into it
  for (const auto& argument : recipe.arguments) {
    const auto tensor = pointers.tensors.find(argument.name);
    const CUdeviceptr base = tensor == pointers.tensors.end() ? 0 : tensor->second;
    if (argument.kind == Argument::Kind::tensor_map) {
      plan.maps_.push_back(std::make_unique<Map>());
      TRY(encode(device, argument, symbols, base, &plan.maps_.back()->map));
      plan.parameters_.push_back(&plan.maps_.back()->map);
      continue;
    }
    Scalar value{};
    if (argument.kind == Argument::Kind::tensor) {
      value.pointer = base;
    } else if (argument.kind == Argument::Kind::workspace) {
      value.pointer = pointers.workspace;
    } else if (argument.type == "f32") {
      const auto real = reals.find(argument.real);
      value.f32 = static_cast<float>(real == reals.end() ? argument.real_default : real->second);
    } else {
      TRY_ASSIGN(const auto number, argument.expr.eval(symbols));
      if (argument.type == "i64") {
        value.i64 = number;
      } else {
        if (number < INT32_MIN || number > INT32_MAX)
          return bad_input("arguments." + argument.name, std::to_string(number), "a 32-bit value");
        value.i32 = static_cast<std::int32_t>(number);
      }
    }
    plan.scalars_.push_back(value);
    plan.parameters_.push_back(&plan.scalars_.back());
  }
  const auto& api = device.api();
  // Static shared memory counts towards the 48 KiB that need no asking, so ask whenever there is any dynamic.
  if (plan.concrete_.dynamic_smem_bytes > 0)
    TRY(device.check(
        api.set_attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                          static_cast<int>(plan.concrete_.dynamic_smem_bytes)),
        ("Asking for " + std::to_string(plan.concrete_.dynamic_smem_bytes) + " bytes of shared memory").c_str()));
  const auto& cluster = plan.concrete_.cluster;
  if (cluster[0] * cluster[1] * cluster[2] > 8)
    TRY(device.check(api.set_attribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
                     "Asking for a cluster of more than 8 blocks"));
  return plan;
}

Status LaunchPlan::launch(const Device& device) const {
  CUlaunchConfig config{};
  config.gridDimX = static_cast<unsigned int>(concrete_.grid[0]);
  config.gridDimY = static_cast<unsigned int>(concrete_.grid[1]);
  config.gridDimZ = static_cast<unsigned int>(concrete_.grid[2]);
  config.blockDimX = static_cast<unsigned int>(concrete_.block[0]);
  config.blockDimY = static_cast<unsigned int>(concrete_.block[1]);
  config.blockDimZ = static_cast<unsigned int>(concrete_.block[2]);
  config.sharedMemBytes = static_cast<unsigned int>(concrete_.dynamic_smem_bytes);
  config.hStream = device.stream();
  std::array<CUlaunchAttribute, 3> attributes{};
  unsigned int count = 0;
  if (concrete_.cluster[0] * concrete_.cluster[1] * concrete_.cluster[2] > 1) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[count].value.clusterDim.x = static_cast<unsigned int>(concrete_.cluster[0]);
    attributes[count].value.clusterDim.y = static_cast<unsigned int>(concrete_.cluster[1]);
    attributes[count++].value.clusterDim.z = static_cast<unsigned int>(concrete_.cluster[2]);
  }
  if (cooperative_) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attributes[count++].value.cooperative = 1;
  }
  if (pdl_) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes[count++].value.programmaticStreamSerializationAllowed = 1;
  }
  config.attrs = attributes.data();
  config.numAttrs = count;
  return device.check(device.api().launch(&config, function_, const_cast<void**>(parameters_.data()), nullptr),
                      "Launching the kernel");
}

}  // namespace tunerd::gpu
