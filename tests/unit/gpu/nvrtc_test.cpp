// The real NVRTC: what it makes of good, bad and doubtful sources.
#include "gpu/nvrtc.h"

#include "fixture.h"
#include "gpu/cubin.h"
#include "helper_source.h"

using namespace tunerd;
using namespace tunerd::test;

namespace {

const gpu::Compiler& compiler() {
  static const gpu::Compiler loaded = must(gpu::Compiler::load());
  return loaded;
}

wire::CompileResult compiled(const wire::CompileJob& job) {
  auto result = compiler().compile(job);
  CHECK(result.id == job.id);
  CHECK(result.ok == !result.cubin.empty());
  CHECK(result.ok == result.error.empty());
  return result;
}

wire::CompileResult compiled_well(const wire::CompileJob& job) {
  auto result = compiled(job);
  if (!result.ok) FAIL(result.error << "\n" << result.log);
  return result;
}

Recipe scale_recipe() {
  Recipe recipe;
  recipe.entry = "scale";
  recipe.arguments = {tensor_argument("y"), scalar_argument("n", "i32"), scalar_argument("ld", "i64"),
                      scalar_argument("factor", "f32")};
  return recipe;
}

}  // namespace

TEST_CASE("the version is major.minor") {
  const std::string version = compiler().version();
  const auto dot = version.find('.');
  REQUIRE(dot != std::string::npos);
  CHECK(std::stoi(version.substr(0, dot)) >= 12);
  CHECK(version.find_first_not_of("0123456789.") == std::string::npos);
}

TEST_CASE("a kernel compiles to a cubin for each architecture, its parameters as declared, its resources read") {
  for (const char* arch : {"sm_80", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_120a"}) {
    CAPTURE(arch);
    const auto result = compiled_well(compile_job(kScale, "scale", arch));
    CHECK(result.registers > 0);
    CHECK(result.registers <= 255);
    CHECK(result.static_smem_bytes >= 512);  // newer architectures reserve some themselves
    CHECK(result.spill_bytes == 0);
    CHECK(result.rejected.empty());
    CHECK(result.compile_ms > 0);
    const auto kernel = must(gpu::find_kernel(result.cubin, "scale"));
    must(gpu::check_arch(kernel, arch));
    must(gpu::check_parameters(kernel, scale_recipe()));
    REQUIRE(kernel.parameters.size() == 4);
    CHECK(kernel.parameters[1].size_bytes == 4);
    CHECK(kernel.parameters[2].offset_bytes == 16);
  }
}

TEST_CASE("the same job gives the same bytes again") {
  const auto job = compile_job(kScale, "scale");
  CHECK(compiled_well(job).cubin == compiled_well(job).cubin);
}

TEST_CASE("a source that does not compile is a result with its first error line, not a failure of the compiler") {
  const auto result = compiled(compile_job("extern \"C\" __global__ void k(float* p) {\n  p[0] = qqq;\n}\n", "k"));
  CHECK_FALSE(result.ok);
  CHECK(contains(result.error, "k.cu(2): error"));
  CHECK(contains(result.error, "qqq"));
  CHECK(contains(result.log, result.error));
  compiled_well(compile_job(kScale, "scale"));  // and the next one compiles
}

TEST_CASE("a static_assert's sentence reaches the error") {
  const auto result = compiled(compile_job(
      "static_assert(1 > 2, \"the tile must divide the block\");\nextern \"C\" __global__ void k() {}", "k"));
  CHECK(contains(result.error, "the tile must divide the block"));
}

TEST_CASE("headers come from memory by their quoted names; one that is not there is named") {
  auto job =
      compile_job("#include \"device/number.cuh\"\nextern \"C\" __global__ void k(int* p) { *p = number(); }", "k");
  job.headers = {{"device/number.cuh", "#include \"device/deeper.cuh\"\n"},
                 {"device/deeper.cuh", "__device__ int number() { return 41; }"}};
  compiled_well(job);
  job.headers.pop_back();
  CHECK(contains(compiled(job).error, "deeper.cuh"));
}

TEST_CASE("defines reach the source") {
  auto job =
      compile_job("extern \"C\" __global__ void k(float* p) { static_assert(BM == 128, \"BM\"); *p = BM; }", "k");
  CHECK_FALSE(compiled(job).ok);
  job.options.emplace_back("-DBM=128");
  compiled_well(job);
}

TEST_CASE("an entry that the source does not define is an error that lists what it does define") {
  const auto result = compiled(compile_job(kScale, "scael"));
  CHECK_FALSE(result.ok);
  CHECK(contains(result.error, "scael"));
  CHECK(contains(result.error, "scale"));
}

TEST_CASE("an unknown architecture and an unknown option are errors in NVRTC's words") {
  CHECK(contains(compiled(compile_job(kScale, "scale", "sm_42")).error, "gpu-architecture"));
  CHECK(contains(compiled(compile_job(kScale, "scale", "")).error, "error"));
  auto job = compile_job(kScale, "scale");
  job.options.emplace_back("--no-such-option");
  CHECK(contains(compiled(job).error, "--no-such-option"));
}

TEST_CASE("a kernel that spills compiles and is rejected, with the bytes") {
  auto job = compile_job(R"(
extern "C" __global__ void spill(float* p) {
  float v[96];
#pragma unroll
  for (int i = 0; i < 96; ++i) v[i] = p[threadIdx.x + i * 97];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 96; ++i) p[threadIdx.x * 96 + i] = v[i] * v[95 - i];
})",
                         "spill", "sm_90a");
  job.options.emplace_back("--maxrregcount=32");
  const auto result = compiled_well(job);
  CHECK(result.spill_bytes > 0);
  CHECK(result.registers == 32);
  CHECK(contains(result.rejected, std::to_string(result.spill_bytes)));
}

TEST_CASE("setmaxnreg that ptxas drops for want of launch bounds rejects the kernel as C7508") {
  const std::string body = R"(setmax(float* p) {
  if (threadIdx.x < 128) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
  else asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  p[threadIdx.x] = 1;
})";
  CHECK(contains(compiled_well(compile_job("extern \"C\" __global__ void " + body, "setmax", "sm_90a")).rejected,
                 "C7508"));
  CHECK(compiled_well(compile_job("extern \"C\" __global__ void __launch_bounds__(256, 1) " + body, "setmax", "sm_90a"))
            .rejected.empty());
}

TEST_CASE("a real cubin that is cut or changed anywhere never crashes the parser") {
  const std::string cubin = compiled_well(compile_job(kScale, "scale")).cubin;
  for (std::size_t size = 0; size < cubin.size(); ++size)
    gpu::find_kernel(std::string_view(cubin).substr(0, size), "scale");
  std::size_t changed = 0;
  for (std::size_t at = 0; at < cubin.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = cubin;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      const auto kernel = gpu::find_kernel(damaged, "scale");
      changed += !kernel || !gpu::check_parameters(*kernel, scale_recipe());
    }
  CHECK(changed > 50);
  CHECK_FALSE(gpu::find_kernel(std::string_view(cubin).substr(0, cubin.size() / 2), "scale"));
}

TEST_CASE("the measure worker's own kernels compile for every architecture, each with the parameters that are passed") {
  const std::vector<std::pair<std::string, std::vector<std::int64_t>>> kernels{
      {"fill", {8, 8, 8, 8, 4, 4, 8}},
      {"compare", {8, 8, 8, 8, 8, 8, 4, 4, 8, 8, 8, 8, 8}},
      {"check_bytes", {8, 8, 4, 8}},
      {"check_padding", {8, 8, 8, 8, 4, 8}},
      {"same_bytes", {8, 8, 8, 8}},
      {"checksum", {8, 8, 8}},
      {"sweep", {8, 8, 8}},
      {"empty", {}},
  };
  for (const char* arch : {"sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"}) {
    const auto result = compiled_well(compile_job(gpu::kHelperSource, "fill", arch));
    CHECK(result.rejected.empty());
    for (const auto& [name, sizes] : kernels) {
      CAPTURE(name);
      const auto kernel = must(gpu::find_kernel(result.cubin, name));
      std::vector<std::int64_t> found;
      for (const auto& parameter : kernel.parameters) found.push_back(parameter.size_bytes);
      CHECK(found == sizes);
    }
  }
}
