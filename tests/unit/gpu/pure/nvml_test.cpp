#include "gpu/nvml.h"

#include "fixture.h"

using namespace tunerd;
using namespace tunerd::test;

namespace {

Json state_with_throttle(const char* word) { return {{"throttle", Json::array({word})}}; }
Json state_with_process(const Json& percent) {
  return {{"foreign_processes", Json::array({{{"pid", 4711}, {"sm_percent", percent}}})}};
}

}  // namespace

TEST_CASE("a thermal or hardware slowdown on either side taints a sample; a power cap does not") {
  for (const char* word : {"thermal", "hw_thermal", "hw_slowdown", "power_brake"}) {
    CHECK(contains(gpu::taint_of(state_with_throttle(word), Json::object()), word));
    CHECK(contains(gpu::taint_of(Json::object(), state_with_throttle(word)), word));
  }
  CHECK(gpu::taint_of(state_with_throttle("power_cap"), state_with_throttle("sync_boost")).empty());
}

TEST_CASE("a foreign process taints when it computes or nobody knows, and is named; one that idles does not") {
  CHECK(contains(gpu::taint_of(Json::object(), state_with_process(35)), "4711"));
  CHECK(contains(gpu::taint_of(state_with_process(Json()), Json::object()), "4711"));
  CHECK(gpu::taint_of(state_with_process(0), state_with_process(0)).empty());
}

TEST_CASE("without readings nothing is tainted: absent is not busy") {
  CHECK(gpu::taint_of(Json::object(), Json::object()).empty());
}

TEST_CASE("a device that NVML does not know, or no NVML at all, leaves readings out and says why") {
  const gpu::Nvml nvml("FFFF:FF:1F.7");
  CHECK_FALSE(nvml.error().empty());
  CHECK(nvml.state() == Json::object());
  CHECK(nvml.driver_version() == "unknown");
  CHECK(nvml.product_name().empty());
  CHECK(nvml.power_cap_w() == 0);
  CHECK_FALSE(nvml.mig_enabled());
}
