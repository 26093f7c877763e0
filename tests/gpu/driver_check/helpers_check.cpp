// The worker's own kernels against what the host computes.
#include <algorithm>
#include <cmath>
#include <set>

#include "copy_op.h"
#include "gpu/verify.h"

using namespace tunerd;
using namespace tunerd::test;
using namespace tunerd::gpu;

namespace {

struct Bench {
  std::unique_ptr<Device> device = must(Device::open(0, 10));
  Helpers helpers = must(Helpers::build(*device, must(Compiler::load())));

  template <class T>
  std::vector<T> download(CUdeviceptr pointer, std::size_t count) const {
    std::vector<T> out(count);
    must(device->check(device->api().to_host(out.data(), pointer, count * sizeof(T), device->stream()), "download"));
    must(device->wait());
    return out;
  }
  template <class T>
  void upload(CUdeviceptr pointer, const std::vector<T>& values) const {
    must(device->check(device->api().from_host(pointer, values.data(), values.size() * sizeof(T), device->stream()),
                       "upload"));
    must(device->wait());
  }
  Verdict verdict(const std::function<Status()>& work) const {
    must(helpers.reset_verdicts());
    must(work());
    return must(helpers.verdicts())[0];
  }
};

const Bench& bench() {
  static const Bench made;
  return made;
}

Matrix floats(const Buffer& buffer, std::int64_t rows, std::int64_t cols, std::int64_t ld) {
  return {buffer.pointer(), rows, cols, ld, DType::fp32};
}

}  // namespace

TEST_CASE("integer inputs are all of -2 to 2 and nothing else, and the padding stays as it was") {
  const auto buffer = must(Buffer::allocate(*bench().device, 100 * 128 * 4));
  must(bench().helpers.poison(buffer.pointer(), buffer.bytes(), 0xFF));
  must(bench().helpers.fill(floats(buffer, 100, 120, 128), Fill::integers, 7));
  const auto values = bench().download<float>(buffer.pointer(), 100 * 128);
  std::set<float> seen;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % 128 < 120)
      seen.insert(values[i]);
    else
      CHECK(std::isnan(values[i]));
  }
  CHECK(seen == std::set<float>{-2, -1, 0, 1, 2});
}

TEST_CASE("gaussian inputs have mean 0 and deviation 1; a seed gives the same bytes, another seed others") {
  constexpr std::int64_t kCount = 1 << 20;
  const auto a = must(Buffer::allocate(*bench().device, kCount * 4)),
             b = must(Buffer::allocate(*bench().device, kCount * 4));
  must(bench().helpers.fill(floats(a, 1, kCount, kCount), Fill::gaussian, 11));
  must(bench().helpers.fill(floats(b, 1, kCount, kCount), Fill::gaussian, 11));
  const auto same = [&] { return bench().helpers.same_bytes(a.pointer(), b.pointer(), kCount * 4, 0); };
  CHECK(bench().verdict(same).count == 0);
  double sum = 0, squares = 0;
  for (const float value : bench().download<float>(a.pointer(), kCount)) {
    REQUIRE(std::isfinite(value));
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  CHECK(std::abs(sum / kCount) < 0.01);
  CHECK(std::abs(squares / kCount - 1) < 0.01);
  must(bench().helpers.fill(floats(b, 1, kCount, kCount), Fill::gaussian, 12));
  CHECK(bench().verdict(same).count > kCount / 4);
}

TEST_CASE("extreme rows hold what they should: equal values, an infinity of each sign, a NaN, an offset") {
  const auto buffer = must(Buffer::allocate(*bench().device, 6 * 512 * 4));
  must(bench().helpers.fill(floats(buffer, 6, 512, 512), Fill::extremes, 3));
  const auto values = bench().download<float>(buffer.pointer(), 6 * 512);
  const auto count = [&](std::size_t row, auto matches) {
    return std::count_if(values.begin() + static_cast<std::ptrdiff_t>(row * 512),
                         values.begin() + static_cast<std::ptrdiff_t>(row * 512 + 512), matches);
  };
  CHECK(count(0, [](float v) { return std::isfinite(v); }) == 512);
  CHECK(count(1, [](float v) { return v == 3.0f; }) == 512);
  CHECK(count(2, [](float v) { return v == HUGE_VALF; }) == 1);
  CHECK(count(3, [](float v) { return std::isnan(v); }) == 1);
  CHECK(count(4, [](float v) { return v > 240.0f; }) == 512);
  CHECK(count(5, [](float v) { return v == -HUGE_VALF; }) == 1);
}

TEST_CASE("one wrong byte is found past four gigabytes: its place and how many") {
  constexpr std::int64_t kBytes = (std::int64_t{9} << 29) + 3;  // 4.5 GiB and a tail
  const auto buffer = must(Buffer::allocate(*bench().device, kBytes));
  must(bench().helpers.poison(buffer.pointer(), kBytes, 0xA5));
  const auto check = [&] { return bench().helpers.check_bytes(buffer.pointer(), kBytes, 0xA5, 0); };
  const auto sum = [&] { return bench().helpers.checksum(buffer.pointer(), kBytes, 0); };
  CHECK(bench().verdict(check).count == 0);
  const auto before = bench().verdict(sum).count;
  CHECK(bench().verdict(sum).count == before);
  bench().upload<unsigned char>(buffer.pointer() + (kBytes - 2), {0xA4});
  const Verdict found = bench().verdict(check);
  CHECK(found.count == 1);
  CHECK(found.first == static_cast<std::uint64_t>(kBytes - 2));
  CHECK(bench().verdict(sum).count != before);
  bench().upload<unsigned char>(buffer.pointer() + (kBytes - 2), {0xA5});
  CHECK(bench().verdict(sum).count == before);
}

TEST_CASE("a guarded tensor notices one byte before it, one after it, and one between its rows") {
  const Matrix shape{0, 10, 30, 32, DType::bf16};
  const auto tensor = must(GuardedTensor::make(*bench().device, bench().helpers, shape));
  const CUdeviceptr start = tensor.matrix().pointer;
  const auto wrong = [&](CUdeviceptr at, unsigned char fine) {
    bench().upload<unsigned char>(at, {0x11});
    must(bench().helpers.reset_verdicts());
    must(tensor.check(bench().helpers, 0));
    const auto verdicts = must(bench().helpers.verdicts());
    bench().upload<unsigned char>(at, {fine});
    return std::pair(verdicts[0].count, verdicts[1].count);
  };
  using Counts = std::pair<std::uint64_t, std::uint64_t>;
  CHECK(wrong(start, GuardedTensor::kPoison) == Counts{0, 0});
  CHECK(wrong(start - 1, GuardedTensor::kGuard) == Counts{1, 0});
  CHECK(wrong(start + static_cast<CUdeviceptr>(tensor.payload_bytes()), GuardedTensor::kGuard) == Counts{1, 0});
  CHECK(wrong(start + 30 * 2, GuardedTensor::kPoison) == Counts{0, 1});
  CHECK(wrong(start + 8 * 64 + 63, GuardedTensor::kPoison) == Counts{0, 1});
}

TEST_CASE(
    "comparing: bitwise after rounding to nearest even, else the bound; NaN and infinities must meet their like") {
  // 1 + 2^-8 lies half way between two bf16 values, 1 + 3·2^-8 too: one rounds down, one up.
  const std::vector<double> want{1.0, 1.0 + 0x1p-8, 1.0 + 3 * 0x1p-8, NAN, HUGE_VAL, -HUGE_VAL, 4.0, 1e39};
  const std::vector<std::uint16_t> got{0x3f80, 0x3f80, 0x3f82, 0x7fc0, 0x7f80, 0xff80, 0x4080, 0x7f80};
  const auto count = static_cast<std::int64_t>(want.size());
  const auto out = must(Buffer::allocate(*bench().device, 64)), ref = must(Buffer::allocate(*bench().device, 64)),
             err = must(Buffer::allocate(*bench().device, 64));
  const Matrix matrix{out.pointer(), 1, count, count, DType::bf16};
  bench().upload(ref.pointer(), want);
  bench().upload(err.pointer(), std::vector<double>(want.size(), 0.0));
  const auto wrong = [&](const std::vector<std::uint16_t>& values, bool bitwise) {
    bench().upload(out.pointer(), values);
    return bench().verdict(
        [&] { return bench().helpers.compare(matrix, ref.pointer(), err.pointer(), bitwise, 1.0, 0); });
  };
  CHECK(wrong(got, true).count == 0);
  CHECK(wrong(got, false).count == 0);
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    auto other = got;
    other[i] = static_cast<std::uint16_t>(i == 3 ? 0x3f80 : got[i] ^ 2);  // a number for the NaN, two steps off, a NaN
    const Verdict found = wrong(other, true);
    CHECK(found.count == 1);
    CHECK(found.first == i);
    CHECK(wrong(other, false).count == 1);
  }
  auto near = got;
  near[6] = 0x4081;  // one step: within a bound of twice the rounding error, not bitwise
  CHECK(wrong(near, true).count == 1);
  bench().upload(err.pointer(), std::vector<double>(want.size(), 0.04));
  CHECK(wrong(near, false).count == 0);
}

TEST_CASE("an element is read back as the number it is, of every type") {
  const auto buffer = must(Buffer::allocate(*bench().device, 64));
  const auto read = [&](DType dtype, std::uint64_t index) {
    return must(bench().helpers.element(Matrix{buffer.pointer(), 2, 2, 3, dtype}, index));
  };
  bench().upload<std::uint16_t>(buffer.pointer(), {0x3f80, 0xc000, 0, 0x7f80});
  CHECK(read(DType::bf16, 1) == -2.0);
  CHECK(read(DType::bf16, 2) == HUGE_VAL);
  bench().upload<std::uint16_t>(buffer.pointer(), {0x3c00, 0x0001, 0, 0xfbff});
  CHECK(read(DType::fp16, 0) == 1.0);
  CHECK(read(DType::fp16, 1) == 0x1p-24);
  CHECK(read(DType::fp16, 2) == -65504.0);
  bench().upload<float>(buffer.pointer(), {1.5f, 0, 0, -3.25f});
  CHECK(read(DType::fp32, 2) == -3.25);
  bench().upload<std::int32_t>(buffer.pointer(), {1, -7, 0, 9});
  CHECK(read(DType::int32, 1) == -7);
  bench().upload<double>(buffer.pointer(), {1e300, 2, 0, 3});
  CHECK(read(DType::fp64, 0) == 1e300);
}
