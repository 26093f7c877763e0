// The shipped tables against what their architectures can do: a slip of a digit in a peak would quietly bend every
// SOL fraction.
#include <cmath>

#include "fixture.h"
#include "model/device.h"

using namespace tunerd;
using namespace tunerd::testing;

namespace {

// Dense 16-bit tensor operations (a multiply-add is two) per SM and clock with fp32 accumulation, and what follows
// from the architecture alone.
struct Architecture {
  std::string arch;
  double tensor_ops;  // GeForce: half of it
  double fp32_ops;
  std::int64_t smem_per_block_kib, smem_per_sm_kib, threads_per_sm;
  bool bf16, fp8;
};
const Architecture kArchitectures[] = {
    {"sm_75", 1024, 128, 64, 64, 1024, false, false},  {"sm_80", 2048, 128, 163, 164, 2048, true, false},
    {"sm_86", 1024, 256, 99, 100, 1536, true, false},  {"sm_89", 1024, 256, 99, 100, 1536, true, true},
    {"sm_90a", 4096, 256, 227, 228, 2048, true, true}, {"sm_100a", 8192, 256, 227, 228, 2048, true, true},
    {"sm_120a", 1024, 256, 99, 100, 1536, true, true},
};

bool is_geforce(const DeviceSpec& device) { return device.name.rfind("rtx-", 0) == 0; }
bool near(double value, double wanted, double tolerance) { return std::abs(value / wanted - 1) <= tolerance; }

const std::vector<DeviceSpec>& shipped() {
  static const auto devices = must(load_devices(fs::path(TUNERD_SOURCE_DIR) / "config/devices"));
  return devices;
}

const Architecture& architecture(const DeviceSpec& device) {
  for (const auto& row : kArchitectures)
    if (row.arch == device.arch) return row;
  FAIL("no architecture for " << device.arch);
  return kArchitectures[0];
}

}  // namespace

TEST_CASE("every device that the project promises has a table, by the name of its file") {
  for (const char* name : {"a100-sxm-40gb", "a100-sxm-80gb", "a100-pcie-40gb", "a100-pcie-80gb", "h100-sxm",
                           "h100-pcie", "h200-sxm", "b200", "l4", "l40s", "a10", "t4", "rtx-4090", "rtx-5090"})
    CHECK(must(find_device(shipped(), name)).name == name);
  for (const auto& device : shipped())
    CHECK(fs::exists(fs::path(TUNERD_SOURCE_DIR) / "config/devices" / (device.name + ".json")));
}

TEST_CASE("16-bit tensor peaks are dense: SMs x clock x operations per SM and clock, within 3 %") {
  for (const auto& device : shipped()) {
    CAPTURE(device.name);
    const double per_clock = static_cast<double>(device.sm_count) * device.boost_clock_hz;
    const double ops = architecture(device).tensor_ops / (is_geforce(device) ? 2 : 1);
    CHECK(near(device.peak_flops.at("fp16"), per_clock * ops, 0.03));
    CHECK(device.peak_flops.contains("bf16") == architecture(device).bf16);
    if (architecture(device).bf16) CHECK(device.peak_flops.at("bf16") == device.peak_flops.at("fp16"));
  }
}

TEST_CASE("the other peaks stand in their architecture's ratio to the 16-bit one") {
  for (const auto& device : shipped()) {
    CAPTURE(device.name);
    const auto& peaks = device.peak_flops;
    const double half = peaks.at("fp16");
    CHECK(peaks.contains("fp8") == architecture(device).fp8);
    if (peaks.contains("fp8")) CHECK(near(peaks.at("fp8"), 2 * half, 0.03));
    CHECK(near(peaks.at("int8"), (is_geforce(device) ? 4 : 2) * half, 0.03));
    if (peaks.contains("tf32")) CHECK(near(peaks.at("tf32"), half / 2, 0.03));
    if (peaks.contains("fp4")) CHECK(near(peaks.at("fp4"), 4 * half, 0.03));
    CHECK(peaks.contains("fp16_acc_fp16") == is_geforce(device));
    if (is_geforce(device)) {
      CHECK(near(peaks.at("fp16_acc_fp16"), 2 * half, 0.03));
      CHECK(near(peaks.at("fp8_acc_fp16"), 4 * half, 0.03));
    }
  }
}

TEST_CASE("vector peaks hold within 10 %: datasheets give them at the maximum clock") {
  for (const auto& device : shipped()) {
    CAPTURE(device.name);
    const double at_clock =
        static_cast<double>(device.sm_count) * device.boost_clock_hz * architecture(device).fp32_ops;
    CHECK(near(device.peak_flops.at("fp32"), at_clock, 0.10));
  }
}

TEST_CASE("shared memory and threads per SM are the architecture's") {
  for (const auto& device : shipped()) {
    CAPTURE(device.name);
    const auto& wanted = architecture(device);
    CHECK(device.smem_per_block_bytes == wanted.smem_per_block_kib * 1024);
    CHECK(device.smem_per_sm_bytes == wanted.smem_per_sm_kib * 1024);
    CHECK(device.threads_per_sm == wanted.threads_per_sm);
    CHECK(device.registers_per_sm == 65536);
  }
}

TEST_CASE("caches, bandwidths and sources are plausible") {
  std::vector<std::string> products;
  for (const auto& device : shipped()) {
    CAPTURE(device.name);
    CHECK(device.l2_bytes % (1 << 20) == 0);
    CHECK(device.l2_bytes >= 4 << 20);
    CHECK(device.l2_bytes <= 128 << 20);
    CHECK(device.memory_bytes_per_s >= 300e9);
    CHECK(device.memory_bytes_per_s <= 8e12);
    CHECK(device.source.rfind("NVIDIA ", 0) == 0);
    CHECK_FALSE(device.product_names.empty());
    for (const auto& product : device.product_names) products.push_back(product);
  }
  std::sort(products.begin(), products.end());
  CHECK(std::adjacent_find(products.begin(), products.end()) == products.end());
}
