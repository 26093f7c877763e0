#include "gpu/timer.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "gpu/verify.h"

namespace tunerd::gpu {
namespace {

constexpr std::int64_t kMostCopies = 1000, kMostLaunches = 1000;

struct Event {
  const Device& device;
  CUevent handle = nullptr;
  explicit Event(const Device& owner) : device(owner) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() {
    if (handle != nullptr && !device.lost()) device.api().event_destroy(handle);
  }
  Status create() { return device.check(device.api().event_create(&handle, CU_EVENT_DEFAULT), "cuEventCreate"); }
  Status record() { return device.check(device.api().event_record(handle, device.stream()), "cuEventRecord"); }
};

// A captured sequence of launches, ready to replay.
class Graph {
 public:
  explicit Graph(const Device& device) : device_(device) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() {
    if (executable_ != nullptr && !device_.lost()) device_.api().graph_exec_destroy(executable_);
    if (graph_ != nullptr && !device_.lost()) device_.api().graph_destroy(graph_);
  }
  Status capture(const std::function<Status()>& work) {
    TRY(device_.check(device_.api().begin_capture(device_.stream(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                      "Beginning a capture"));
    auto worked = work();
    TRY(device_.check(device_.api().end_capture(device_.stream(), &graph_), "Ending a capture"));
    if (!worked) return worked;
    return device_.check(device_.api().graph_instantiate(&executable_, graph_, 0), "Instantiating the graph");
  }
  Status replay() const {
    return device_.check(device_.api().graph_launch(executable_, device_.stream()), "Replaying the graph");
  }

 private:
  const Device& device_;
  CUgraph graph_ = nullptr;
  CUgraphExec executable_ = nullptr;
};

// Microseconds of what `work` issues, between two events.
Result<double> elapsed_us(const Device& device, Event& begin, Event& end, const std::function<Status()>& work) {
  TRY(begin.record());
  TRY(work());
  TRY(end.record());
  TRY(device.wait());
  float ms = 0;
  TRY(device.check(device.api().event_elapsed(&ms, begin.handle, end.handle), "cuEventElapsedTime"));
  return ms * 1e3;
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

void Timer::forget() { copies_ = {}; }

std::int64_t Timer::held_bytes() const {
  return copies_.bytes_each * static_cast<std::int64_t>(copies_.tensors.size()) + sweep_.bytes();
}

Status Timer::prepare(const wire::MeasureJob& job, const OpSpec& op, const Problem& problem) {
  if (copies_.key == job.problem_key && !copies_.tensors.empty()) return {};
  forget();
  TRY_ASSIGN(const Symbols symbols, problem_symbols(op, problem));
  std::int64_t bytes = 0;
  for (const auto& tensor : op.tensors)
    if (is_present(tensor, problem)) {
      TRY_ASSIGN(const auto span, tensor_span_elements(tensor, symbols));
      bytes += span * size_bytes(tensor_dtype(tensor, problem));
    }
  if (bytes > job.memory_limit_bytes)
    return fail(Code::busy, "One copy of the tensors takes " + std::to_string(bytes) + " bytes, the limit is " +
                                std::to_string(job.memory_limit_bytes));
  const std::int64_t l2 = std::max<std::int64_t>(device_.l2_bytes(), 1 << 20);
  const std::int64_t wanted = std::clamp<std::int64_t>((3 * l2 + bytes - 1) / bytes + 1, 2, kMostCopies);
  const std::int64_t count = std::clamp<std::int64_t>(job.memory_limit_bytes / 2 / bytes, 1, wanted);
  copies_.bytes_each = bytes;
  copies_.sweep = count * bytes < 3 * l2;
  for (std::int64_t i = 0; i < count; ++i) {
    std::map<std::string, Buffer> copy;
    for (const auto& tensor : op.tensors) {
      if (!is_present(tensor, problem)) continue;
      TRY_ASSIGN(Matrix shape, matrix_of(tensor, problem, symbols));
      TRY_ASSIGN(auto buffer,
                 Buffer::allocate(device_, ((shape.rows - 1) * shape.ld + shape.cols) * size_bytes(shape.dtype)));
      shape.pointer = buffer.pointer();
      const Fill fill = tensor.distribution == "uniform01"  ? Fill::uniform01
                        : tensor.distribution == "positive" ? Fill::positive
                                                            : Fill::gaussian;
      TRY(helpers_.fill(shape, fill, job.seed * 1000003u + static_cast<std::uint64_t>(i)));
      copy.emplace(tensor.name, std::move(buffer));
    }
    copies_.tensors.push_back(std::move(copy));
  }
  if (copies_.sweep && sweep_.bytes() < 3 * l2) {
    TRY_ASSIGN(sweep_, Buffer::allocate(device_, 3 * l2));
    TRY(helpers_.poison(sweep_.pointer(), sweep_.bytes(), 1));
  }
  TRY(device_.wait());
  copies_.key = job.problem_key;
  return {};
}

Result<Timing> Timer::time(const wire::MeasureJob& job, const OpSpec& op, const Problem& problem, CUfunction kernel) {
  if (auto ready = prepare(job, op, problem); !ready) {
    forget();
    return Unexpected(ready.error());
  }
  TRY_ASSIGN(const Symbols symbols, problem_symbols(op, problem));
  TRY_ASSIGN(const auto concrete, concrete_launch(job.recipe, symbols));
  TRY_ASSIGN(auto workspace, Buffer::allocate(device_, std::max<std::int64_t>(concrete.workspace_bytes, 16)));
  TRY(helpers_.poison(workspace.pointer(), workspace.bytes(), 0));
  const bool zero_each = std::any_of(
      job.recipe.arguments.begin(), job.recipe.arguments.end(),
      [](const auto& argument) { return argument.kind == Argument::Kind::workspace && argument.init == "zero_each"; });
  std::vector<LaunchPlan> plans;
  for (const auto& copy : copies_.tensors) {
    Pointers pointers;
    for (const auto& [name, buffer] : copy) pointers.tensors[name] = buffer.pointer();
    pointers.workspace = workspace.pointer();
    TRY_ASSIGN(auto plan, LaunchPlan::make(device_, kernel, job.recipe, symbols, pointers, problem.reals));
    plans.push_back(std::move(plan));
  }
  const auto launch = [&](std::size_t i) -> Status {
    if (zero_each) TRY(helpers_.poison(workspace.pointer(), concrete.workspace_bytes, 0));
    return plans[i % plans.size()].launch(device_);
  };
  Event begin(device_), end(device_);
  TRY(begin.create());
  TRY(end.create());
  // The first launches load code and pages; the estimate is the fastest of three.
  double once_us = HUGE_VAL;
  for (std::size_t i = 0; i < 4; ++i) {
    TRY_ASSIGN(const double us, elapsed_us(device_, begin, end, [&] { return launch(i); }));
    if (i > 0) once_us = std::min(once_us, us);
  }
  const auto copies = static_cast<std::int64_t>(plans.size());
  // Launches visit each copy at most once when L2 is swept between replays, else as often as the replay's length asks
  // for.
  std::int64_t launches = static_cast<std::int64_t>(std::ceil(job.min_replay_us / std::max(once_us, 1.0)));
  launches = copies_.sweep ? std::clamp<std::int64_t>(launches, 1, copies)
                           : std::clamp<std::int64_t>(launches, std::min(copies, kMostLaunches), kMostLaunches);
  // A replay counts as one launch for the deadline: many copies of a slow kernel must not look like one that never
  // ends.
  const double most_us = 0.25e6 * device_.launch_deadline_s();
  launches = std::clamp<std::int64_t>(static_cast<std::int64_t>(most_us / std::max(once_us, 1.0)), 1, launches);
  Graph graph(device_);
  const auto captured = graph.capture([&]() -> Status {
    for (std::int64_t i = 0; i < launches; ++i) TRY(launch(static_cast<std::size_t>(i)));
    return {};
  });
  TRY(captured);
  Timing timing;
  timing.launches_per_replay = launches;
  timing.copies = copies;
  for (std::int64_t i = 0; i <= job.repeats; ++i) {
    if (copies_.sweep) TRY(helpers_.sweep(sweep_));
    TRY_ASSIGN(const double us, elapsed_us(device_, begin, end, [&] { return graph.replay(); }));
    if (i > 0) timing.samples_us.push_back(us / static_cast<double>(launches));
  }
  timing.median_us = median(timing.samples_us);
  return timing;
}

Result<double> Timer::launch_floor_us() {
  if (floor_us_ > 0) return floor_us_;
  Event begin(device_), end(device_);
  TRY(begin.create());
  TRY(end.create());
  constexpr int kLaunches = 500;
  Graph graph(device_);
  const auto captured = graph.capture([&]() -> Status {
    for (int i = 0; i < kLaunches; ++i) TRY(helpers_.empty());
    return {};
  });
  TRY(captured);
  std::vector<double> samples;
  for (int i = 0; i < 12; ++i) {
    TRY_ASSIGN(const double us, elapsed_us(device_, begin, end, [&] { return graph.replay(); }));
    if (i > 0) samples.push_back(us / kLaunches);
  }
  floor_us_ = median(samples);
  return floor_us_;
}

}  // namespace tunerd::gpu
