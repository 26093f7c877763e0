#include <dlfcn.h>
#include <doctest/doctest.h>

#include "fake_daemon.h"
#include "prepared.h"
#include "tuner.hpp"
#include "wire/symbols.h"

using namespace tunerd;

namespace {

const tuner::Attributes kAttributes{{"dtype", "bf16"}};

struct Fixture {
  FakeDaemon daemon;
  tuner::Client client{daemon.path()};
  tuner::Kernel kernel = client.get("gemm", {{"m", 64}, {"n", 1024}, {"k", 1024}}, kAttributes);
  std::vector<tuner::Tensor> tensors{{"x", 0x10000}, {"w", 0x20000}, {"y", 0x30000}};

  // The field the error of a launch names; "" when the launch got as far as the driver, which is not here or has no
  // context.
  std::string refused(const tuner::LaunchOptions& options = {}) {
    try {
      kernel.launch(nullptr, tensors, options);
    } catch (const tuner::Error& error) {
      tuner_error_parts parts{};
      parts.struct_size = sizeof parts;
      tuner_last_error_parts(nullptr, &parts);
      if (error.status() == TUNER_MISSING || error.status() == TUNER_DEVICE) return "";
      CHECK(error.status() == TUNER_INVALID_ARGUMENT);
      return parts.field;
    }
    FAIL("a launch without a context did not fail");
    return {};
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "right arguments pass every check, and a missing driver is a clear error") {
  CHECK(refused() == "");
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) CHECK(std::string(tuner_last_error(nullptr)).find("libcuda.so.1 not found") == 0);
}

TEST_CASE_FIXTURE(Fixture, "a missing tensor is named before anything reaches the GPU") {
  tensors.pop_back();
  CHECK(refused() == "tensor y");
}

TEST_CASE_FIXTURE(Fixture, "a null pointer is named") {
  tensors[1].data = 0;
  CHECK(refused() == "tensor w");
}

TEST_CASE_FIXTURE(Fixture, "a misaligned pointer is named with the alignment it needs") {
  tensors[0].data += 8;
  CHECK(refused() == "tensor x");
  CHECK(std::string(tuner_last_error(nullptr)).find("aligned to 16 bytes") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "an unknown tensor suggests the nearest, and none may be given twice") {
  tensors.push_back({"xx", 0x10000});
  CHECK(refused() == "tensor");
  tensors.back().name = "x";
  CHECK(refused() == "tensor x");
}

TEST_CASE_FIXTURE(Fixture, "a tensor the kernel was asked for without is refused, a null one is fine") {
  tensors.push_back({"bias", 0x40000});
  CHECK(refused() == "tensor bias");
  tensors.back().data = 0;
  CHECK(refused() == "");
}

TEST_CASE_FIXTURE(Fixture,
                  "another size inside the validity is evaluated, one outside is refused with the check's reason") {
  tuner::LaunchOptions options;
  options.dims = {{"m", 4096}};
  CHECK(refused(options) == "");
  options.dims = {{"k", 1023}};
  CHECK(refused(options) == "k");
  CHECK(std::string(tuner_last_error(nullptr)).find("k must be a multiple of 8") != std::string::npos);
  options.dims = {{"kk", 8}};
  CHECK(refused(options) == "dim");
  options.dims = {{"m", 0}};
  CHECK(refused(options) == "dim m");
  options.dims = {{"m", -1}};
  CHECK(refused(options) == "dim m");
}

TEST_CASE_FIXTURE(Fixture, "a row stride below its row, negative, or of a vector is named") {
  tensors[0].row_stride = 1000;
  CHECK(refused() == "ld_x");
  tensors[0].row_stride = -8;
  CHECK(refused() == "row_stride of tensor x");
  tensors[0].row_stride = 2048;
  CHECK(refused() == "");
}

TEST_CASE_FIXTURE(Fixture, "an unknown real suggests the nearest, and an infinite one is refused") {
  tuner::LaunchOptions options;
  options.reals = {{"epss", 1e-5}};
  CHECK(refused(options) == "real");
  options.reals = {{"eps", std::numeric_limits<double>::infinity()}};
  CHECK(refused(options) == "real eps");
  options.reals = {{"eps", 1e-5}};
  CHECK(refused(options) == "");
}

TEST_CASE_FIXTURE(Fixture, "a workspace too small or misaligned is named; its needs can be asked for") {
  const tuner::Workspace need = kernel.workspace();
  CHECK(need.bytes == 2 * 64);
  CHECK(need.alignment == 256);
  CHECK(need.zeroed);
  CHECK(kernel.workspace({{"m", 320}}).bytes == 10 * 64);
  tuner::LaunchOptions options;
  options.workspace = 0x100000;
  options.workspace_bytes = 127;
  CHECK(refused(options) == "workspace_bytes");
  options.workspace_bytes = 128;
  CHECK(refused(options) == "");
  options.workspace += 128;
  CHECK(refused(options) == "workspace");
}

TEST_CASE_FIXTURE(Fixture, "null arguments of a launch are named") {
  CHECK(tuner_launch(nullptr, nullptr, nullptr) == TUNER_INVALID_ARGUMENT);
  CHECK(tuner_launch(kernel.handle(), nullptr, nullptr) == TUNER_INVALID_ARGUMENT);
  tuner_launch_args args = TUNER_LAUNCH_ARGS_INIT;
  args.tensor_count = 3;
  CHECK(tuner_launch(kernel.handle(), nullptr, &args) == TUNER_INVALID_ARGUMENT);
  args.struct_size = 3;
  CHECK(tuner_launch(kernel.handle(), nullptr, &args) == TUNER_INVALID_ARGUMENT);
}

TEST_CASE_FIXTURE(Fixture, "sizes past a tensor map's or a 64-bit product's reach are errors, not wrapped values") {
  tuner::LaunchOptions options;
  options.dims = {{"n", (std::int64_t{1} << 32) + 8}};
  CHECK(refused(options) != "");  // grid.y past 65535
  options.dims = {{"m", std::int64_t{1} << 40}, {"k", std::int64_t{1} << 40}};
  CHECK(refused(options) != "");
}

TEST_CASE("a tensor of more than 4 GiB is evaluated in 64 bits") {
  const std::int64_t m = 200'000, k = 65'536;  // x: 26 GB
  const auto symbols = wire::recipe_symbols(sample_recipe(), {{"m", m}, {"n", 64}, {"k", k}}, {}, DType::bf16);
  REQUIRE(symbols);
  CHECK(*symbols->find("bytes_x") == m * k * 2);
  const auto prepared = client::prepare(sample_recipe(), *symbols);
  REQUIRE(prepared);
  CHECK(prepared->launch.grid[0] == m / 32);
  CHECK(prepared->slots[4] == static_cast<std::uint64_t>(m));
  CHECK(prepared->maps.at(0).strides[0] == static_cast<std::uint64_t>(k) * 2);
}

TEST_CASE("a scalar of 32 bits that does not fit is an error that names it") {
  Recipe recipe = sample_recipe();
  recipe.arguments[4].expr = sample_expr("m*k");
  recipe.arguments[4].type = "i32";
  const auto symbols = wire::recipe_symbols(recipe, {{"m", 1 << 16}, {"n", 64}, {"k", 1 << 16}}, {}, DType::bf16);
  const auto prepared = client::prepare(recipe, *symbols);
  REQUIRE_FALSE(prepared);
  CHECK(prepared.error().field == "scalar m");
  CHECK(prepared.error().value == "4294967296");
}

TEST_CASE("recipes past what this client launches are refused when they arrive") {
  Recipe recipe = sample_recipe();
  recipe.tensors.resize(client::kMaxTensors + 1, recipe.tensors[0]);
  CHECK_FALSE(client::check_bounds(recipe));
  recipe = sample_recipe();
  recipe.arguments[1].map.box = {64};
  CHECK_FALSE(client::check_bounds(recipe));
  recipe = sample_recipe();
  recipe.arguments[1].map.box = {64, 257};
  CHECK_FALSE(client::check_bounds(recipe));
  recipe = sample_recipe();
  recipe.arguments.back().align_bytes = 3;
  CHECK_FALSE(client::check_bounds(recipe));
  CHECK(client::check_bounds(sample_recipe()));
}

TEST_CASE("a tensor map's stride that is no multiple of 16 bytes is an error that names it") {
  const auto symbols =
      wire::recipe_symbols(sample_recipe(), {{"m", 8}, {"n", 8}, {"k", 8}}, {{"ld_w", 12}}, DType::bf16);
  REQUIRE(symbols);
  const auto prepared = client::prepare(sample_recipe(), *symbols);
  REQUIRE_FALSE(prepared);
  CHECK(prepared.error().field == "tensor_map w.strides_bytes[0]");
}
