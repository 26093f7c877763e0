#include "gpu/helpers.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "helper_source.h"
#include "model/environment.h"

namespace tunerd::gpu {
namespace {

constexpr unsigned int kThreads = 256;
constexpr std::int64_t kMostBlocks = 8192;

double smallest_normal(DType dtype) {
  return dtype == DType::fp16 ? 0x1p-14 : dtype == DType::fp64 ? 0x1p-1022 : 0x1p-126;
}

double largest_finite(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return 0x1.fep127;
    case DType::fp16:
      return 65504.0;
    case DType::fp32:
      return 0x1.fffffep127;
    default:
      return HUGE_VAL;
  }
}

}  // namespace

Result<Helpers> Helpers::build(const Device& device, const Compiler& compiler) {
  wire::CompileJob job;
  job.name = "worker kernels";
  job.source_name = "helpers.cu";
  job.source = kHelperSource;
  job.options = fixed_nvrtc_options();
  job.arch = device.arch();
  job.entry = "fill";
  const auto compiled = compiler.compile(job);
  if (!compiled.ok)
    return fail(Code::compile_failed,
                "The worker's own kernels do not compile for " + job.arch + ": " + compiled.error);
  Helpers helpers;
  helpers.device_ = &device;
  TRY_ASSIGN(auto module, Module::load(device, compiled.cubin));
  helpers.module_ = std::make_shared<Module>(std::move(module));
  TRY_ASSIGN(auto slots, Buffer::allocate(device, kSlots * static_cast<std::int64_t>(sizeof(Verdict))));
  helpers.slots_ = std::make_shared<Buffer>(std::move(slots));
  TRY_ASSIGN(helpers.fill_, helpers.module_->function("fill"));
  TRY_ASSIGN(helpers.compare_, helpers.module_->function("compare"));
  TRY_ASSIGN(helpers.check_bytes_, helpers.module_->function("check_bytes"));
  TRY_ASSIGN(helpers.check_padding_, helpers.module_->function("check_padding"));
  TRY_ASSIGN(helpers.same_bytes_, helpers.module_->function("same_bytes"));
  TRY_ASSIGN(helpers.checksum_, helpers.module_->function("checksum"));
  TRY_ASSIGN(helpers.sweep_, helpers.module_->function("sweep"));
  TRY_ASSIGN(helpers.empty_, helpers.module_->function("empty"));
  TRY(helpers.reset_verdicts());
  TRY(device.wait());
  return helpers;
}

Status Helpers::launch(CUfunction function, std::int64_t items, std::vector<void*> parameters) const {
  CUlaunchConfig config{};
  config.gridDimX =
      static_cast<unsigned int>(std::clamp<std::int64_t>((items + kThreads - 1) / kThreads, 1, kMostBlocks));
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = kThreads;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = device_->stream();
  return device_->check(device_->api().launch(&config, function, parameters.data(), nullptr),
                        "Launching one of the worker's own kernels");
}

Status Helpers::fill(const Matrix& matrix, Fill mode, std::uint64_t seed) const {
  Matrix m = matrix;
  int dtype = static_cast<int>(m.dtype), how = static_cast<int>(mode);
  return launch(fill_, m.rows * m.cols, {&m.pointer, &m.rows, &m.cols, &m.ld, &dtype, &how, &seed});
}

Status Helpers::poison(CUdeviceptr pointer, std::int64_t bytes, std::uint8_t value) const {
  if (bytes <= 0) return {};
  return device_->check(device_->api().memset8(pointer, value, static_cast<std::size_t>(bytes), device_->stream()),
                        "Poisoning a buffer");
}

Status Helpers::compare(const Matrix& out, CUdeviceptr ref, CUdeviceptr err, bool bitwise, double c, int slot) const {
  Matrix m = out;
  int dtype = static_cast<int>(m.dtype), exact = bitwise ? 1 : 0;
  double eps = epsilon(m.dtype), smallest = smallest_normal(m.dtype), largest = largest_finite(m.dtype);
  CUdeviceptr verdict = slots_->pointer() + static_cast<std::size_t>(slot) * sizeof(Verdict);
  return launch(
      compare_, m.rows * m.cols,
      {&m.pointer, &ref, &err, &m.rows, &m.cols, &m.ld, &dtype, &exact, &c, &eps, &smallest, &largest, &verdict});
}

Status Helpers::check_bytes(CUdeviceptr pointer, std::int64_t bytes, std::uint8_t value, int slot) const {
  int wanted = value;
  CUdeviceptr verdict = slots_->pointer() + static_cast<std::size_t>(slot) * sizeof(Verdict);
  return launch(check_bytes_, bytes, {&pointer, &bytes, &wanted, &verdict});
}

Status Helpers::check_padding(const Matrix& matrix, std::uint8_t value, int slot) const {
  if (matrix.rows < 2 || matrix.ld == matrix.cols) return {};
  CUdeviceptr pointer = matrix.pointer;
  std::int64_t rows = matrix.rows, row_bytes = matrix.cols * size_bytes(matrix.dtype),
               stride_bytes = matrix.ld * size_bytes(matrix.dtype);
  int wanted = value;
  CUdeviceptr verdict = slots_->pointer() + static_cast<std::size_t>(slot) * sizeof(Verdict);
  return launch(check_padding_, (rows - 1) * (stride_bytes - row_bytes),
                {&pointer, &rows, &row_bytes, &stride_bytes, &wanted, &verdict});
}

Status Helpers::same_bytes(CUdeviceptr a, CUdeviceptr b, std::int64_t bytes, int slot) const {
  CUdeviceptr verdict = slots_->pointer() + static_cast<std::size_t>(slot) * sizeof(Verdict);
  return launch(same_bytes_, bytes / 8 + 8, {&a, &b, &bytes, &verdict});
}

Status Helpers::checksum(CUdeviceptr pointer, std::int64_t bytes, int slot) const {
  CUdeviceptr verdict = slots_->pointer() + static_cast<std::size_t>(slot) * sizeof(Verdict);
  return launch(checksum_, bytes / 8 + 8, {&pointer, &bytes, &verdict});
}

Status Helpers::sweep(const Buffer& buffer) const {
  CUdeviceptr pointer = buffer.pointer(), sink = slots_->pointer() + (kSlots - 1) * sizeof(Verdict);
  std::int64_t count = buffer.bytes() / 16;
  return launch(sweep_, count, {&pointer, &count, &sink});
}

Status Helpers::empty() const { return launch(empty_, 1, {}); }

Status Helpers::reset_verdicts() const {
  // count 0, first all ones: one memset for each half of every slot would be many; a host copy of 4 KiB is one call.
  static const std::vector<Verdict> kClear(kSlots);
  return device_->check(
      device_->api().from_host(slots_->pointer(), kClear.data(), kClear.size() * sizeof(Verdict), device_->stream()),
      "Clearing the verdicts");
}

Result<std::vector<Verdict>> Helpers::verdicts() const {
  std::vector<Verdict> out(kSlots);
  TRY(device_->wait());
  TRY(device_->check(
      device_->api().to_host(out.data(), slots_->pointer(), out.size() * sizeof(Verdict), device_->stream()),
      "Reading the verdicts"));
  TRY(device_->wait());
  return out;
}

Result<double> Helpers::element(const Matrix& matrix, std::uint64_t dense_index) const {
  const auto index = static_cast<std::int64_t>(dense_index);
  const std::int64_t at = index / matrix.cols * matrix.ld + index % matrix.cols;
  std::uint64_t raw = 0;
  TRY(device_->check(
      device_->api().to_host(&raw, matrix.pointer + static_cast<CUdeviceptr>(at * size_bytes(matrix.dtype)),
                             static_cast<std::size_t>(size_bytes(matrix.dtype)), device_->stream()),
      "Reading an element"));
  TRY(device_->wait());
  const auto low = static_cast<std::uint32_t>(raw);
  switch (matrix.dtype) {
    case DType::bf16: {
      const std::uint32_t bits = low << 16;
      float value = 0;
      std::memcpy(&value, &bits, 4);
      return value;
    }
    case DType::fp16: {
      const int exponent = static_cast<int>(low >> 10 & 31), mantissa = static_cast<int>(low & 1023);
      const double sign = (low & 0x8000) != 0 ? -1.0 : 1.0;
      if (exponent == 31) return mantissa != 0 ? std::nan("") : sign * HUGE_VAL;
      return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25));
    }
    case DType::fp32: {
      float value = 0;
      std::memcpy(&value, &low, 4);
      return value;
    }
    case DType::fp64: {
      double value = 0;
      std::memcpy(&value, &raw, 8);
      return value;
    }
    case DType::int32:
      return static_cast<std::int32_t>(low);
  }
  return fail(Code::internal, "Unknown dtype");
}

Result<double> Helpers::element(CUdeviceptr doubles, std::uint64_t index) const {
  return element(
      Matrix{doubles, 1, static_cast<std::int64_t>(index) + 1, static_cast<std::int64_t>(index) + 1, DType::fp64},
      index);
}

}  // namespace tunerd::gpu
