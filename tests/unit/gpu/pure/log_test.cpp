#include "fixture.h"
#include "gpu/nvrtc.h"

using namespace tunerd;
using namespace tunerd::test;

TEST_CASE("registers, stack and shared memory are the entry's own, not those of functions whose names hold its name") {
  const std::string log =
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'gemm_other' for 'sm_80'\n"
      "ptxas info    : Function properties for gemm_other\n"
      "ptxas         .     32 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 99 registers, used 0 barriers, 4096 bytes smem, 360 bytes cmem[0]\n"
      "ptxas info    : Compiling entry function 'gemm' for 'sm_80'\n"
      "ptxas info    : Function properties for gemm\n"
      "ptxas         .     160 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 28 registers, used 1 barriers, 160 bytes cumulative stack size, 256 bytes smem, 360 bytes "
      "cmem[0]\n"
      "ptxas info    : Function properties for _Z9gemm_partf\n"
      "ptxas         .     48 bytes stack frame, 24 bytes spill stores, 24 bytes spill loads\n";
  const auto gemm = gpu::read_log(log, "gemm");
  CHECK(gemm.registers == 28);
  CHECK(gemm.stack_bytes == 160);
  CHECK(gemm.spill_bytes == 0);
  CHECK(gemm.static_smem_bytes == 256);
  CHECK(gemm.rejected.empty());
  const auto other = gpu::read_log(log, "gemm_other");
  CHECK(other.registers == 99);
  CHECK(other.spill_bytes == 20);
  CHECK(other.static_smem_bytes == 4096);
  CHECK(contains(other.rejected, "20 bytes"));
  CHECK(gpu::read_log(log, "gem").registers == 0);
}

TEST_CASE("a line that says setmaxnreg was dropped or wgmma serialised rejects the kernel, and is named") {
  for (const char* code : {"C7504", "C7505", "C7508", "C7510", "C7520"}) {
    const std::string line = std::string("ptxas info    : (") + code + ") Potential Performance Loss: 'x' ignored";
    const auto found = gpu::read_log("ptxas info    : 0 bytes gmem\n" + line + "\n", "k");
    CAPTURE(found.rejected);
    CHECK(found.rejected.rfind(std::string(code) + ": ", 0) == 0);
    CHECK(contains(found.rejected, "Potential Performance Loss"));
  }
}

TEST_CASE("a note about injected arrives rejects nothing, and neither does a name that looks like a code") {
  CHECK(gpu::read_log("ptxas info : (C7519) Potential Performance Loss: arrive injected\n", "k").rejected.empty());
  CHECK(gpu::read_log("ptxas info : Function properties for xC7508\nptxas info : C75081\n", "k").rejected.empty());
  CHECK(gpu::read_log("ptxas info : C750\n", "k").rejected.empty());
  const auto both = gpu::read_log("(C7519) noted\n(C7508) dropped", "k");
  CHECK(both.rejected.rfind("C7508", 0) == 0);
}

TEST_CASE("a log that is empty, cut short or has numbers too large gives zeros, never a crash") {
  const std::string log =
      "ptxas info    : Compiling entry function 'k' for 'sm_80'\nptxas info    : Function properties for k\n"
      "ptxas         .     8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n"
      "ptxas info    : Used 28 registers, 16 bytes smem\n";
  for (std::size_t size = 0; size <= log.size(); ++size) {
    const auto found = gpu::read_log(log.substr(0, size), "k");
    CHECK(found.registers >= 0);
    CHECK(found.registers <= 28);
    CHECK(found.spill_bytes <= 8);
  }
  const auto huge = gpu::read_log("Compiling entry function 'k'\nUsed 99999999999999999999999999 registers\n", "k");
  CHECK(huge.registers == 0);
}
