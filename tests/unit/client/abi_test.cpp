// The driver's layouts that client/lib/src/cu.h writes down, against cuda.h itself.
#include <cuda.h>
#include <doctest/doctest.h>

#include <cstddef>

#include "cu.h"

namespace cu = tunerd::client::cu;

TEST_CASE("the driver's structs are laid out as cuda.h says") {
  CHECK(sizeof(cu::TensorMap) == sizeof(CUtensorMap));
  CHECK(alignof(cu::TensorMap) >= alignof(CUtensorMap));
  CHECK(sizeof(cu::LaunchConfig) == sizeof(CUlaunchConfig));
  CHECK(offsetof(cu::LaunchConfig, block_x) == offsetof(CUlaunchConfig, blockDimX));
  CHECK(offsetof(cu::LaunchConfig, shared_bytes) == offsetof(CUlaunchConfig, sharedMemBytes));
  CHECK(offsetof(cu::LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
  CHECK(offsetof(cu::LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
  CHECK(offsetof(cu::LaunchConfig, attribute_count) == offsetof(CUlaunchConfig, numAttrs));
  CHECK(sizeof(cu::LaunchAttribute) == sizeof(CUlaunchAttribute));
  CHECK(offsetof(cu::LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
}

TEST_CASE("the driver's numbers are as cuda.h says") {
  CHECK(cu::kAttributeCooperative == CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  CHECK(cu::kAttributeCluster == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  CHECK(cu::kAttributePdl == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
  CHECK(cu::kMaxDynamicShared == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  CHECK(cu::kNonPortableCluster == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
  CHECK(cu::kCaptureRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK(cu::kTypeInt32 == CU_TENSOR_MAP_DATA_TYPE_INT32);
  CHECK(cu::kTypeFp16 == CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
  CHECK(cu::kTypeFp32 == CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
  CHECK(cu::kTypeFp64 == CU_TENSOR_MAP_DATA_TYPE_FLOAT64);
  CHECK(cu::kTypeBf16 == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  CHECK(CU_TENSOR_MAP_SWIZZLE_128B == 3);
  CHECK(CU_TENSOR_MAP_L2_PROMOTION_L2_256B == 3);
}
