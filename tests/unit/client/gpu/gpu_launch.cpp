// Real launches of a real cubin through libtuner. Needs a GPU of compute capability 9.0 or more (tensor maps); without
// one it says so and passes, as what it could check otherwise is in launch_test.cpp.
#include <cuda.h>
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdlib>

#include "device.h"
#include "fake_daemon.h"
#include "gpu/nvrtc.h"
#include "kernel.h"
#include "tuner.hpp"

using namespace tunerd;

namespace {

template <class F>
F* driver_function(const char* name) {
  static void* library = ::dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<F*>(::dlsym(library, name));
}
// The name as the headers map it: cuStreamBeginCapture is cuStreamBeginCapture_v2.
#define CU_(function, ...) REQUIRE(driver_function<decltype(function)>(#function)(__VA_ARGS__) == CUDA_SUCCESS)
#define CU(function, ...) CU_(function, __VA_ARGS__)

const example::Device* device() {
  static std::string why_not;
  static const auto opened = example::Device::open(why_not);
  static bool said = false;
  if (!opened && !std::exchange(said, true)) MESSAGE("launches are skipped: " << why_not);
  return opened ? &*opened : nullptr;
}

std::string compile(const std::string& arch, int scale) {
  const auto compiler = gpu::Compiler::load();
  REQUIRE(compiler);
  wire::CompileJob job;
  job.name = job.entry = "sample_gemm";
  job.source_name = "sample_gemm.cu";
  job.source = kKernelSource;
  job.options = fixed_nvrtc_options();
  job.options.push_back("-DSCALE=" + std::to_string(scale));
  job.arch = arch;
  const auto result = compiler->compile(job);
  REQUIRE_MESSAGE(result.ok, result.log);
  return result.cubin;
}

Recipe launch_recipe() {
  Recipe recipe = sample_recipe();
  recipe.arguments[1].map.swizzle = "none";
  return recipe;
}

constexpr std::int64_t kM = 100, kN = 200, kK = 136;

// Integer inputs in -2…2: every sum is exact, so results are compared bit for bit.
std::uint16_t bf16_of(int value) {
  const float real = static_cast<float>(value);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &real, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
int input(std::int64_t row, std::int64_t col, int salt) {
  return static_cast<int>((row * 7 + col * 13 + salt) % 5) - 2;
}

std::vector<std::uint16_t> matrix(std::int64_t rows, std::int64_t cols, std::int64_t stride, int salt) {
  std::vector<std::uint16_t> out(static_cast<std::size_t>(rows * stride), 0x7FC0);  // padding is NaN
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c) out[static_cast<std::size_t>(r * stride + c)] = bf16_of(input(r, c, salt));
  return out;
}

struct Fixture {
  FakeDaemon daemon;
  Recipe recipe = launch_recipe();

  Fixture() {
    daemon.get = [this](const Json& request, int& fd) {
      Json answer = daemon.serve(request, fd);
      answer["recipe"] = to_json(recipe);
      return answer;
    };
  }
  tuner::Kernel get(const tuner::Client& client) {
    return client.get("gemm", {{"m", kM}, {"n", kN}, {"k", kK}}, {{"dtype", "bf16"}});
  }
};

struct Buffers {
  std::int64_t m, n, k, ld_x, ld_y;
  std::uint64_t x, w, y;
  Buffers(std::int64_t m_, std::int64_t n_, std::int64_t k_, std::int64_t pad)
      : m(m_),
        n(n_),
        k(k_),
        ld_x(k_ + pad),
        ld_y(n_ + pad),
        x(device()->put(matrix(m, k, ld_x, 1))),
        w(device()->put(matrix(n, k, k, 2))),
        y(device()->allocate(static_cast<std::size_t>(m * ld_y) * 2)) {
    clear();
  }
  void clear() const {
    const std::vector<std::uint16_t> nan(static_cast<std::size_t>(m * ld_y), 0xFFFF);
    device()->upload(y, nan.data(), nan.size() * 2);
  }
  std::vector<tuner::Tensor> tensors() const {
    return {{"x", x, ld_x == k ? 0 : ld_x}, {"w", w}, {"y", y, ld_y == n ? 0 : ld_y}};
  }
  // Elements that are not scale·(x·wᵀ) + add, padding that was written included.
  int wrong(int scale, int add = 0) const {
    const auto got = device()->take<std::uint16_t>(y, static_cast<std::size_t>(m * ld_y));
    int count = 0;
    for (std::int64_t r = 0; r < m; ++r)
      for (std::int64_t c = 0; c < ld_y; ++c) {
        int sum = 0;
        for (std::int64_t l = 0; l < k && c < n; ++l) sum += input(r, l, 1) * input(c, l, 2);
        const std::uint16_t want = c < n ? bf16_of(scale * sum + add) : 0xFFFF;
        if (got[static_cast<std::size_t>(r * ld_y + c)] != want) ++count;
      }
    return count;
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "the kernel compiles without a GPU too") { CHECK(compile("sm_90a", 1).size() > 1000); }

TEST_CASE_FIXTURE(Fixture,
                  "a launch computes the right result: again, for another size, with padded strides, other reals") {
  if (device() == nullptr) return;
  daemon.upgrade(compile("sm_90a", 1), "v1");
  const tuner::Client client(daemon.path());
  const tuner::Kernel kernel = get(client);
  tuner::LaunchOptions options;
  options.reals = {{"eps", 0}};
  const Buffers own(kM, kN, kK, 0);
  for (int i = 0; i < 3; ++i) {
    own.clear();
    kernel.launch(device()->stream(), own.tensors(), options);
    CHECK(own.wrong(1) == 0);
  }
  options.reals = {{"eps", 3}};
  kernel.launch(device()->stream(), own.tensors(), options);
  CHECK(own.wrong(1, 3) == 0);

  options.dims = {{"m", 333}, {"n", 70}, {"k", 512}};
  for (const std::int64_t pad : {0, 8}) {
    const Buffers other(333, 70, 512, pad);
    kernel.launch(device()->stream(), other.tensors(), options);
    CHECK(other.wrong(1, 3) == 0);
  }
}

TEST_CASE_FIXTURE(Fixture, "a workspace of the caller is used") {
  if (device() == nullptr) return;
  daemon.upgrade(compile("sm_90a", 1), "v1");
  const tuner::Client client(daemon.path());
  const tuner::Kernel kernel = get(client);
  const Buffers buffers(kM, kN, kK, 0);
  tuner::LaunchOptions options;
  options.reals = {{"eps", 0}};
  options.workspace_bytes = kernel.workspace().bytes;
  options.workspace = device()->put(std::vector<char>(static_cast<std::size_t>(options.workspace_bytes), 0));
  kernel.launch(device()->stream(), buffers.tensors(), options);
  CHECK(buffers.wrong(1) == 0);
  // One whose counters are not zero shows in the result: it really is this one.
  options.workspace = device()->put(std::vector<char>(static_cast<std::size_t>(options.workspace_bytes), 1));
  kernel.launch(device()->stream(), buffers.tensors(), options);
  CHECK(buffers.wrong(1) > 0);
}

TEST_CASE_FIXTURE(Fixture, "the very first launch may be captured into a graph, which replays with right results") {
  if (device() == nullptr) return;
  daemon.upgrade(compile("sm_90a", 1), "v1");
  const tuner::Client client(daemon.path());
  const tuner::Kernel kernel = get(client);
  const Buffers buffers(kM, kN, kK, 0);
  const auto stream = static_cast<CUstream>(device()->stream());
  tuner::LaunchOptions options;
  options.reals = {{"eps", 0}};
  CU(cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  kernel.launch(stream, buffers.tensors(), options);
  CUgraph graph = nullptr;
  CU(cuStreamEndCapture, stream, &graph);
  CUgraphExec exec = nullptr;
  CU(cuGraphInstantiateWithFlags, &exec, graph, 0);
  for (int i = 0; i < 3; ++i) {
    buffers.clear();
    CU(cuGraphLaunch, exec, stream);
    CHECK(buffers.wrong(1) == 0);
  }
  kernel.launch(stream, buffers.tensors(), options);  // and an ordinary one after it
  CHECK(buffers.wrong(1) == 0);
  CU(cuGraphExecDestroy, exec);
  CU(cuGraphDestroy, graph);
}

TEST_CASE_FIXTURE(Fixture, "clusters, programmatic dependent launch and the launch without it") {
  if (device() == nullptr) return;
  recipe.launch.grid[0] = sample_expr("ceildiv(m,64)*2");
  recipe.launch.cluster = {2, 1, 1};
  recipe.launch.pdl = true;
  daemon.upgrade(compile("sm_90a", 1), "v1");
  const tuner::Client client(daemon.path());
  const tuner::Kernel kernel = get(client);
  tuner::LaunchOptions options;
  options.dims = {{"m", 128}};
  options.reals = {{"eps", 0}};
  const Buffers buffers(128, kN, kK, 0);
  for (const bool pdl : {true, false}) {
    options.pdl = pdl;
    buffers.clear();
    kernel.launch(device()->stream(), buffers.tensors(), options);
    CHECK(buffers.wrong(1) == 0);
  }
}

TEST_CASE_FIXTURE(Fixture, "an upgrade takes effect at the next launch while earlier ones are still running") {
  if (device() == nullptr) return;
  daemon.upgrade(compile("sm_90a", 1), "v1");
  const tuner::Client client(daemon.path());
  const tuner::Kernel kernel = get(client);
  client.subscribe();
  const Buffers before(kM, kN, kK, 0), after(kM, kN, kK, 0);
  tuner::LaunchOptions options;
  options.reals = {{"eps", 0}};
  for (int i = 0; i < 200; ++i) kernel.launch(device()->stream(), before.tensors(), options);
  daemon.upgrade(compile("sm_90a", 2), "v2");
  Json answer = Json::parse(kernel.info().json);
  const auto generation = kernel.info().generation + 1;
  answer["generation"] = generation;
  daemon.push({{"id", 0}, {"type", "upgrade"}, {"answer", answer}});
  REQUIRE(eventually([&] {
    kernel.launch(device()->stream(), before.tensors(), options);
    return kernel.info().generation == generation;
  }));
  kernel.launch(device()->stream(), after.tensors(), options);
  CHECK(after.wrong(2) == 0);
}

TEST_CASE_FIXTURE(Fixture, "a cubin of another architecture is a clear error of the device") {
  if (device() == nullptr) return;
  recipe = sample_recipe();
  daemon.upgrade(
      "\x7f"
      "ELF no cubin at all",
      "v1");
  const tuner::Client client(daemon.path());
  const tuner::Kernel kernel = get(client);
  const Buffers buffers(kM, kN, kK, 0);
  try {
    kernel.launch(device()->stream(), buffers.tensors());
    FAIL("launched what is no cubin");
  } catch (const tuner::Error& error) {
    CHECK(error.status() == TUNER_DEVICE);
    CHECK(std::string(error.what()).find("sm_90a") != std::string::npos);
  }
}

TEST_CASE_FIXTURE(Fixture, "launches from several threads on their own streams do not disturb each other") {
  if (device() == nullptr) return;
  daemon.upgrade(compile("sm_90a", 1), "v1");
  const tuner::Client client(daemon.path());
  const tuner::Kernel kernel = get(client);
  CUcontext context = nullptr;
  CU(cuCtxGetCurrent, &context);
  struct Lane {
    CUstream stream = nullptr;
    Buffers buffers{kM, kN, kK, 0};
    std::string error;
  };
  std::vector<Lane> lanes(4);
  for (Lane& lane : lanes) CU(cuStreamCreate, &lane.stream, CU_STREAM_NON_BLOCKING);
  std::vector<std::thread> threads;
  for (Lane& lane : lanes)
    threads.emplace_back([&] {
      driver_function<decltype(cuCtxSetCurrent)>("cuCtxSetCurrent")(context);
      tuner::LaunchOptions options;
      options.reals = {{"eps", 0}};
      try {
        for (int i = 0; i < 100; ++i) kernel.launch(lane.stream, lane.buffers.tensors(), options);
      } catch (const tuner::Error& error) {
        lane.error = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (Lane& lane : lanes) {
    CHECK(lane.error == "");
    CU(cuStreamSynchronize, lane.stream);
    CHECK(lane.buffers.wrong(1) == 0);
  }
}
