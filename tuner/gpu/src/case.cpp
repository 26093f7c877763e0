// Inputs and references for the gates.
#include <algorithm>

#include "gpu/verify.h"
#include "model/digest.h"

namespace tunerd::gpu {
namespace {

constexpr double kReferencePatience = 3;  // launch deadlines: it is plain and in fp64
constexpr std::int64_t kReferenceThreads = 256, kReferenceBlocks = std::int64_t{1} << 20;

Fill fill_of(const TensorSpec& tensor, Fill mode) {
  // Extremes go into the data; scales and biases stay ordinary, or every row would be extreme.
  if (mode == Fill::extremes && tensor.shape.size() != 2) mode = Fill::gaussian;
  if (mode != Fill::gaussian) return mode;
  if (tensor.distribution == "uniform01") return Fill::uniform01;
  if (tensor.distribution == "positive") return Fill::positive;
  return Fill::gaussian;
}

std::uint64_t tensor_seed(std::uint64_t seed, const std::string& name) {
  std::uint64_t hash = seed + 1469598103934665603ull;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

}  // namespace

Result<Matrix> matrix_of(const TensorSpec& tensor, const Problem& problem, const Symbols& symbols) {
  Matrix matrix;
  matrix.dtype = tensor_dtype(tensor, problem);
  TRY_ASSIGN(const auto last, tensor.shape.back().eval(symbols));
  matrix.cols = matrix.ld = last;
  if (tensor.shape.size() == 2) {
    TRY_ASSIGN(matrix.rows, tensor.shape[0].eval(symbols));
    if (const auto* ld = symbols.find(tensor.stride_symbol())) matrix.ld = *ld;
  }
  return matrix;
}

Result<GuardedTensor> GuardedTensor::make(const Device& device, const Helpers& helpers, const Matrix& shape) {
  GuardedTensor tensor;
  tensor.payload_bytes_ = ((shape.rows - 1) * shape.ld + shape.cols) * size_bytes(shape.dtype);
  TRY_ASSIGN(tensor.buffer_, Buffer::allocate(device, tensor.payload_bytes_ + 2 * kGuardBytes));
  tensor.matrix_ = shape;
  tensor.matrix_.pointer = tensor.buffer_.pointer() + kGuardBytes;
  TRY(helpers.poison(tensor.buffer_.pointer(), kGuardBytes, kGuard));
  TRY(helpers.poison(tensor.matrix_.pointer + static_cast<CUdeviceptr>(tensor.payload_bytes_), kGuardBytes, kGuard));
  TRY(tensor.poison(helpers));
  return tensor;
}

Status GuardedTensor::poison(const Helpers& helpers) const {
  return helpers.poison(matrix_.pointer, payload_bytes_, kPoison);
}

Status GuardedTensor::check(const Helpers& helpers, int slot) const {
  TRY(helpers.check_bytes(buffer_.pointer(), kGuardBytes, kGuard, slot));
  TRY(helpers.check_bytes(matrix_.pointer + static_cast<CUdeviceptr>(payload_bytes_), kGuardBytes, kGuard, slot));
  return helpers.check_padding(matrix_, kPoison, slot + 1);
}

Result<std::shared_ptr<Case>> Verifier::build(const wire::MeasureJob& job, const OpSpec& op, const Problem& problem,
                                              Fill fill) {
  auto test = std::make_shared<Case>();
  test->op = op;
  test->problem = problem;
  test->fill = fill;
  TRY_ASSIGN(test->symbols, problem_symbols(op, problem));
  const std::string digest = sha256_hex(job.reference_cubin);
  if (!references_.contains(digest)) {
    TRY_ASSIGN(auto module, Module::load(device_, job.reference_cubin));
    if (references_.size() > 32) references_.clear();
    references_[digest] = std::make_shared<Module>(std::move(module));
  }
  TRY_ASSIGN(const CUfunction reference, references_[digest]->function(job.reference_entry));

  std::vector<CUdeviceptr> pointers;
  std::vector<long long> sizes;
  std::vector<float> reals;
  std::int64_t elements = 0;
  for (const auto& tensor : op.tensors) {
    const bool present = is_present(tensor, problem);
    TRY_ASSIGN(const Matrix shape, matrix_of(tensor, problem, test->symbols));
    if (tensor.role == Role::input) {
      CUdeviceptr pointer = 0;
      if (present) {
        TRY_ASSIGN(auto input, GuardedTensor::make(device_, helpers_, shape));
        TRY(helpers_.fill(input.matrix(), fill_of(tensor, fill), tensor_seed(job.seed, tensor.name)));
        pointer = input.matrix().pointer;
        test->bytes += input.payload_bytes();
        test->inputs.emplace(tensor.name, std::move(input));
      }
      pointers.push_back(pointer);
      continue;
    }
    if (!present) {
      pointers.insert(pointers.end(), {0, 0});
      continue;
    }
    Case::Expected expected;
    expected.shape = shape;
    const std::int64_t dense_bytes = shape.rows * shape.cols * 8;
    TRY_ASSIGN(expected.ref, Buffer::allocate(device_, dense_bytes));
    TRY_ASSIGN(expected.err, Buffer::allocate(device_, dense_bytes));
    if (elements == 0) elements = shape.rows * shape.cols;
    pointers.insert(pointers.end(), {expected.ref.pointer(), expected.err.pointer()});
    test->bytes += 2 * dense_bytes;
    test->outputs.emplace(tensor.name, std::move(expected));
  }
  for (const auto& dim : op.dims) sizes.push_back(problem.dims.at(dim.name));
  for (const auto& tensor : op.tensors)
    if (tensor.role == Role::input && tensor.shape.size() == 2)
      sizes.push_back(*test->symbols.find(tensor.stride_symbol()));
  for (const auto& attribute : op.attributes)
    if (attribute.real) reals.push_back(static_cast<float>(problem.reals.at(attribute.name)));

  std::vector<void*> parameters;
  for (auto& pointer : pointers) parameters.push_back(&pointer);
  for (auto& size : sizes) parameters.push_back(&size);
  for (auto& real : reals) parameters.push_back(&real);
  CUlaunchConfig config{};
  config.gridDimX = static_cast<unsigned int>(
      std::clamp<std::int64_t>((elements + kReferenceThreads - 1) / kReferenceThreads, 1, kReferenceBlocks));
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = kReferenceThreads;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = device_.stream();
  TRY(device_.check(device_.api().launch(&config, reference, parameters.data(), nullptr),
                    "Launching the reference kernel"));
  TRY(device_.wait_for(kReferencePatience * device_.launch_deadline_s(), "The reference kernel"));
  TRY(seal(*test));
  return test;
}

Status Verifier::seal(Case& test) {
  for (const auto& [name, input] : test.inputs)
    test.sealed.push_back({"its input " + name, input.matrix().pointer, input.payload_bytes()});
  for (const auto& [name, expected] : test.outputs) {
    test.sealed.push_back({"memory far outside of " + name, expected.ref.pointer(), expected.ref.bytes()});
    test.sealed.push_back({"memory far outside of " + name, expected.err.pointer(), expected.err.bytes()});
  }
  if (test.sealed.size() > Helpers::kSlots)
    return bad_input("tensors", std::to_string(test.sealed.size()),
                     "at most " + std::to_string(Helpers::kSlots) + " inputs and references");
  TRY(helpers_.reset_verdicts());
  for (std::size_t i = 0; i < test.sealed.size(); ++i)
    TRY(helpers_.checksum(test.sealed[i].pointer, test.sealed[i].bytes, static_cast<int>(i)));
  TRY_ASSIGN(const auto verdicts, helpers_.verdicts());
  for (std::size_t i = 0; i < test.sealed.size(); ++i) test.sealed[i].sum = verdicts[i].count;
  return {};
}

Result<std::string> Verifier::broken_seal(const Case& test) {
  TRY(helpers_.reset_verdicts());
  for (std::size_t i = 0; i < test.sealed.size(); ++i)
    TRY(helpers_.checksum(test.sealed[i].pointer, test.sealed[i].bytes, static_cast<int>(i)));
  TRY_ASSIGN(const auto verdicts, helpers_.verdicts());
  for (std::size_t i = 0; i < test.sealed.size(); ++i)
    if (verdicts[i].count != test.sealed[i].sum) return test.sealed[i].what;
  return std::string{};
}

Result<std::shared_ptr<Case>> Verifier::prepare(const wire::MeasureJob& job, const OpSpec& op, const Problem& problem,
                                                Fill fill) {
  const std::string key = problem.key(op) + "/" + std::to_string(static_cast<int>(fill)) + "/" +
                          std::to_string(job.seed) + "/" + sha256_hex(job.reference_cubin);
  for (auto it = cases_.begin(); it != cases_.end(); ++it)
    if (it->first == key) {
      cases_.splice(cases_.begin(), cases_, it);
      return it->second;
    }
  // Room first: a large case must not meet the memory of the last problem's.
  const std::int64_t budget = job.memory_limit_bytes / 4;
  while (!cases_.empty() && cached_bytes_ > budget) {
    cached_bytes_ -= cases_.back().second->bytes;
    cases_.pop_back();
  }
  auto built = build(job, op, problem, fill);
  if (!built && built.error().code == Code::busy && !cases_.empty()) {
    forget();
    built = build(job, op, problem, fill);
  }
  if (!built) return built;
  if ((*built)->bytes <= budget) {
    cases_.emplace_front(key, *built);
    cached_bytes_ += (*built)->bytes;
  }
  return built;
}

void Verifier::forget() {
  cases_.clear();
  cached_bytes_ = 0;
}

}  // namespace tunerd::gpu
