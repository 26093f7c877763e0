// Whole jobs on the cuda device: what passes, what is caught and how, what a time looks like.
#include "copy_op.h"
#include "gpu/device.h"

using namespace tunerd;
using namespace tunerd::test;

namespace {

struct Bench {
  gpu::Compiler compiler = must(gpu::Compiler::load());
  std::unique_ptr<gpu::MeasureDevice> device = must(gpu::open_cuda_device(0, 10));
  std::string arch = device->hello().device_class.arch;

  wire::MeasureResult run(const CopyJob& what) { return device->run(measure_job(compiler, arch, what)); }
};

Bench& bench() {
  static Bench made;
  return made;
}

void passes(const CopyJob& what) {
  const auto result = bench().run(what);
  CAPTURE(result.error);
  CHECK(result.status == "ok");
  for (const auto& gate : result.gates) CHECK(gate.passed);
}

void fails(const CopyJob& what, const std::string& status, const std::string& words) {
  const auto result = bench().run(what);
  CAPTURE(result.error);
  CHECK(result.status == status);
  CHECK(contains(result.error, words));
  CHECK(result.samples_us.empty());
}

CopyJob with_body(const std::string& body) {
  CopyJob job;
  job.body = body;
  return job;
}

CopyJob with_change(std::function<void(Recipe&)> change) {
  CopyJob job;
  job.change = std::move(change);
  return job;
}

const std::string kCopy = kCopyBody;

}  // namespace

TEST_CASE("hello tells what the device is") {
  const auto hello = bench().device->hello();
  CHECK(hello.device_kind == "cuda");
  CHECK(hello.device_class.kind == "cuda");
  CHECK(hello.device_class.sm_count > 0);
  CHECK(hello.device_class.memory_gb_per_s > 0);
  CHECK_FALSE(hello.product_name.empty());
  CHECK(hello.device_facts["l2_bytes"].get<std::int64_t>() > 0);
  CHECK(hello.device_facts["smem_per_block_bytes"].get<std::int64_t>() >= 48 << 10);
}

TEST_CASE("a right kernel passes every gate") {
  const auto result = bench().run({});
  CHECK(result.status == "ok");
  std::vector<std::string> names;
  for (const auto& gate : result.gates) {
    CHECK(gate.passed);
    names.push_back(gate.gate);
  }
  CHECK(names ==
        std::vector<std::string>{"edges", "edges", "edges", "edges", "exact", "gaussian", "extremes", "guards"});
}

TEST_CASE("wrong values, missing values and stray writes are each caught by name") {
  fails(with_body(kCopy + " if (row == 5 && threadIdx.x == 17) out[17] += 1.0f;"), "wrong", "the first at [5,17]");
  fails(with_body("for (long long i = threadIdx.x; i < cols - 1; i += blockDim.x) out[i] = in[i];"), "wrong",
        "elements of y wrong");
  fails(with_body(kCopy + " if (row == rows - 1 && threadIdx.x == 0) out[cols] = 0.0f;"), "wrong",
        "wrote outside of y");
  fails(with_body(kCopy + " if (row == 0 && threadIdx.x == 0) y[-1] = 0.0f;"), "wrong", "wrote outside of y");
  fails(with_body(kCopy + " if (ld_y > cols && row == 0 && threadIdx.x == 0) out[cols] = 0.0f;"), "wrong",
        "padding between rows of y");
  fails(with_body(kCopy + " if (row == 0 && threadIdx.x == 0) w[1024] = 0.0f;"), "wrong", "outside of its workspace");
  fails(with_body(kCopy + " if (row == 0 && threadIdx.x == 0) x[-1] = 0.0f;"), "wrong", "around its input x");
}

TEST_CASE("a kernel that changes its input is caught, and the next variant is not judged by what it left") {
  fails(with_body(kCopy + " __syncthreads(); if (threadIdx.x == 0) in[0] = 5.0f;"), "wrong", "wrote into its input x");
  passes({});
}

TEST_CASE("a kernel that calls itself deterministic and is not is caught; one that says so is not asked") {
  // Zeros of either sign compare equal, but are other bits.
  const std::string unsteady =
      "for (long long i = threadIdx.x; i < cols; i += blockDim.x) "
      "out[i] = in[i] == 0.0f && (clock64() >> 3 & 1) ? -0.0f : in[i];";
  fails(with_body(unsteady), "wrong", "other bits the second time");
  CopyJob honest = with_body(unsteady);
  honest.change = [](Recipe& recipe) { recipe.deterministic = false; };
  passes(honest);
}

TEST_CASE("a workspace is what its recipe says: poisoned, zeroed once, or zeroed each time") {
  CopyJob job = with_body(
      "for (long long i = threadIdx.x; i < cols; i += blockDim.x) out[i] = in[i] + w[row % 1024]; "
      "__syncthreads(); if (threadIdx.x == 0) w[row % 1024] = 1.0f;");
  job.rows = 200;
  fails(job, "wrong", "elements of y wrong");
  job.workspace_init = "zero_once";
  fails(job, "wrong", "other bits the second time");
  job.workspace_init = "zero_each";
  passes(job);
}

TEST_CASE("launches that the driver or the recipe's checks refuse are told apart, and the device goes on") {
  fails(with_change([](Recipe& recipe) { recipe.launch.dynamic_smem_bytes = 1 << 20; }), "launch_failed",
        "shared memory");
  fails(with_change([](Recipe& recipe) { recipe.arguments.pop_back(); }), "unsupported", "arguments");
  fails(with_change([](Recipe& recipe) { recipe.entry = "cpoy"; }), "unsupported", "cpoy");
  fails(with_change([](Recipe& recipe) {
          recipe.checks = {{must(Expr::parse("cols % 4096 == 0")), "cols must be a multiple of 4096"}};
        }),
        "unsupported", "multiple of 4096");
  CopyJob large;
  large.rows = 1 << 20;
  large.cols = 1 << 20;
  fails(large, "out_of_memory", "bytes");
  passes({});
}

TEST_CASE("clusters, programmatic launches and shared memory are launched as the recipe says") {
  passes(with_change([](Recipe& recipe) { recipe.launch.dynamic_smem_bytes = 64 << 10; }));
  CopyJob programmatic = with_change([](Recipe& recipe) { recipe.launch.pdl = true; });
  programmatic.body = "asm volatile(\"griddepcontrol.wait;\" ::: \"memory\"); " + kCopy;
  programmatic.time = true;
  if (bench().device->hello().device_class.arch < "sm_90" && bench().arch.size() == 5) return;
  passes(programmatic);
  passes(with_change([](Recipe& recipe) {
    recipe.launch.cluster = {2, 1, 1};
    recipe.launch.grid[0] = must(Expr::parse("ceildiv(rows, 2) * 2"));
  }));
}

TEST_CASE("a large copy takes what the memory's bandwidth allows, a small one no less than the launch floor") {
  CopyJob large;
  large.rows = 8192;
  large.cols = 8192;
  large.time = true;
  const auto result = bench().run(large);
  CAPTURE(result.error);
  REQUIRE(result.status == "ok");
  CHECK(result.samples_us.size() == 20);
  const double bound_us =
      2.0 * 8192 * 8192 * 4 / (static_cast<double>(bench().device->hello().device_class.memory_gb_per_s) * 1e3);
  MESSAGE("large: " << result.median_us << " us, bound " << bound_us << " us, floor " << result.launch_floor_us
                    << " us, " << result.copies << " copies, " << result.launches_per_replay << " launches");
  CHECK(result.median_us > bound_us);
  CHECK(result.median_us < 3 * bound_us);
  CHECK(result.launch_floor_us > 0.2);
  CHECK(result.launch_floor_us < 20);
  const auto again = bench().run(large);
  CHECK(again.median_us == doctest::Approx(result.median_us).epsilon(0.05));

  CopyJob small;
  small.rows = 64;
  small.cols = 1024;
  small.time = true;
  const auto little = bench().run(small);
  REQUIRE(little.status == "ok");
  const auto l2 = bench().device->hello().device_facts["l2_bytes"].get<std::int64_t>();
  MESSAGE("small: " << little.median_us << " us, " << little.copies << " copies, " << little.launches_per_replay
                    << " launches");
  CHECK((little.copies == 1000 || little.copies * 64 * 1024 * 8 >= 3 * l2));
  CHECK(little.launches_per_replay >= little.copies);
  CHECK(little.median_us > little.launch_floor_us * 0.8);
}
