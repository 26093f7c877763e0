// Asks the daemon for gemm and rmsnorm kernels, launches them, and checks every element on the host.
//
//   tuner-example [SOCKET]
//
// One line a kernel. Ends with 0 when all results are right, or when there is no GPU (the recipes are printed then); 1
// when a result is wrong; 2 when the daemon or the device failed.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "device.h"
#include "tuner.hpp"

namespace {

using example::Device;

// bf16 as bits, rounded to nearest even.
std::uint16_t to_bf16(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
double from_bf16(std::uint16_t half) {
  const std::uint32_t bits = std::uint32_t{half} << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

std::vector<std::uint16_t> gaussian(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::uint16_t> values(count);
  for (auto& value : values) value = to_bf16(normal(random));
  return values;
}

constexpr double kEpsBf16 = 1.0 / 256;  // half a unit in the last place of 1.0, and as much again for a near-tie
constexpr double kEpsFp32 = 1.0 / (1 << 24);

struct Check {
  double max_error = 0;
  bool ok = true;
  void add(double got, double want, double fp32_error) {
    const double error = std::abs(got - want);
    if (!(error <= 2 * (kEpsBf16 * std::abs(want) + fp32_error))) ok = false;  // also when it is NaN
    if (!(error <= max_error)) max_error = error;
  }
};

void report(const tuner::Kernel& kernel, const char* outcome) {
  const auto facts = kernel.info();
  std::printf("%s  %s  %s  %s  %s\n", facts.problem, facts.variant, facts.quality, facts.source, outcome);
}

bool report(const tuner::Kernel& kernel, const Check& check) {
  char outcome[64];
  std::snprintf(outcome, sizeof outcome, "max error %.3g  %s", check.max_error, check.ok ? "ok" : "WRONG");
  report(kernel, outcome);
  return check.ok;
}

void show_recipe(const tuner::Kernel& kernel) {
  const auto facts = kernel.info();
  report(kernel, "not launched");
  std::printf("  %zu bytes of cubin for %s; recipe: %s\n", facts.cubin_bytes, facts.arch, facts.json);
}

// y = x · wᵀ, x [m,k], w [n,k].
bool run_gemm(const Device& device, const tuner::Kernel& kernel, std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto x = gaussian(static_cast<std::size_t>(m * k), 1);
  const auto w = gaussian(static_cast<std::size_t>(n * k), 2);
  const std::uint64_t y = device.put(std::vector<std::uint16_t>(static_cast<std::size_t>(m * n), 0xFFFF));  // NaN
  kernel.launch(device.stream(), {{"x", device.put(x)}, {"w", device.put(w)}, {"y", y}});
  const auto got = device.take<std::uint16_t>(y, static_cast<std::size_t>(m * n));

  const auto widen = [](const std::vector<std::uint16_t>& in) {
    std::vector<double> out(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = from_bf16(in[i]);
    return out;
  };
  const auto xd = widen(x), wd = widen(w);
  Check check;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      const double* a = xd.data() + i * k;
      const double* b = wd.data() + j * k;
      double sum = 0, aa = 0, bb = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        sum += a[l] * b[l];
        aa += a[l] * a[l];
        bb += b[l] * b[l];
      }
      const double fp32_error = std::sqrt(static_cast<double>(k)) * kEpsFp32 * std::sqrt(aa * bb);
      check.add(from_bf16(got[static_cast<std::size_t>(i * n + j)]), sum, fp32_error);
    }
  }
  return report(kernel, check);
}

// y = x / sqrt(mean(x²) + eps) · weight, row by row.
bool run_rmsnorm(const Device& device, const tuner::Kernel& kernel, std::int64_t rows, std::int64_t cols) {
  constexpr double eps = 1e-5;
  const auto x = gaussian(static_cast<std::size_t>(rows * cols), 3);
  const auto weight = gaussian(static_cast<std::size_t>(cols), 4);
  const std::uint64_t y = device.put(std::vector<std::uint16_t>(static_cast<std::size_t>(rows * cols), 0xFFFF));
  tuner::LaunchOptions options;
  options.reals = {{"eps", eps}};
  kernel.launch(device.stream(), {{"x", device.put(x)}, {"weight", device.put(weight)}, {"y", y}}, options);
  const auto got = device.take<std::uint16_t>(y, static_cast<std::size_t>(rows * cols));
  Check check;
  for (std::int64_t i = 0; i < rows; ++i) {
    double squares = 0;
    const std::size_t row = static_cast<std::size_t>(i * cols);
    for (std::size_t j = 0; j < static_cast<std::size_t>(cols); ++j)
      squares += from_bf16(x[row + j]) * from_bf16(x[row + j]);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(cols) + eps);
    for (std::size_t j = 0; j < static_cast<std::size_t>(cols); ++j) {
      const double want = from_bf16(x[row + j]) * scale * from_bf16(weight[j]);
      check.add(from_bf16(got[row + j]), want, 16 * kEpsFp32 * std::abs(want));
    }
  }
  return report(kernel, check);
}

int run(const std::string& socket) {
  const tuner::Client client(socket, "tuner-example");
  struct Gemm {
    std::int64_t m, n, k;
  };
  struct Rows {
    std::int64_t rows, cols;
  };
  const std::vector<Gemm> gemms{{512, 1024, 1024}, {77, 333, 129}};
  const std::vector<Rows> norms{{512, 4096}, {63, 1000}};

  std::string why_not;
  const auto device = Device::open(why_not);
  if (!device) std::printf("no GPU here (%s): showing the recipes only\n", why_not.c_str());
  bool ok = true;
  for (const auto& [m, n, k] : gemms) {
    const auto kernel = client.get("gemm", {{"m", m}, {"n", n}, {"k", k}}, {{"dtype", "bf16"}, {"epilogue", "none"}});
    if (device) {
      ok = run_gemm(*device, kernel, m, n, k) && ok;
    } else {
      show_recipe(kernel);
    }
  }
  for (const auto& [rows, cols] : norms) {
    const auto kernel = client.get("rmsnorm", {{"rows", rows}, {"cols", cols}}, {{"dtype", "bf16"}});
    if (device) {
      ok = run_rmsnorm(*device, kernel, rows, cols) && ok;
    } else {
      show_recipe(kernel);
    }
  }
  return ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tuner-example: %s\n", error.what());
    return 2;
  }
}
