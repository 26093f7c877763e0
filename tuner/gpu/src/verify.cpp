#include "gpu/verify.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tunerd::gpu {
namespace {

bool matches(const std::map<std::string, std::vector<std::string>>& when, const Problem& problem) {
  return std::all_of(when.begin(), when.end(), [&](const auto& entry) {
    const auto found = problem.attributes.find(entry.first);
    return found != problem.attributes.end() &&
           std::find(entry.second.begin(), entry.second.end(), found->second) != entry.second.end();
  });
}

bool must_be_exact(const Case& test) {
  return test.fill == Fill::integers && test.op.tolerance.exact && matches(test.op.tolerance.exact_when, test.problem);
}

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

wire::GateResult failed(const std::string& gate, const Case& test, const std::string& what) {
  return {gate, false, test.problem.key(test.op) + ": " + what};
}

}  // namespace

Result<wire::GateResult> Verifier::check(const std::string& gate, const wire::MeasureJob& job, const Case& test,
                                         CUfunction kernel) {
  const Recipe& recipe = job.recipe;
  std::map<std::string, GuardedTensor> outputs, again;
  Pointers pointers;
  for (const auto& [name, input] : test.inputs) pointers.tensors[name] = input.matrix().pointer;
  for (const auto& [name, expected] : test.outputs) {
    TRY_ASSIGN(auto output, GuardedTensor::make(device_, helpers_, expected.shape));
    pointers.tensors[name] = output.matrix().pointer;
    outputs.emplace(name, std::move(output));
  }
  TRY_ASSIGN(const auto concrete, concrete_launch(recipe, test.symbols));
  TRY_ASSIGN(
      auto workspace,
      GuardedTensor::make(device_, helpers_,
                          Matrix{0, 1, std::max<std::int64_t>(1, (concrete.workspace_bytes + 3) / 4), 1, DType::fp32}));
  bool zero_once = false, zero_each = false;
  for (const auto& argument : recipe.arguments)
    if (argument.kind == Argument::Kind::workspace) {
      zero_once = zero_once || argument.init == "zero_once";
      zero_each = zero_each || argument.init == "zero_each";
    }
  pointers.workspace = workspace.matrix().pointer;
  if (zero_once || zero_each) TRY(helpers_.poison(pointers.workspace, workspace.payload_bytes(), 0));

  TRY_ASSIGN(const auto plan, LaunchPlan::make(device_, kernel, recipe, test.symbols, pointers, test.problem.reals));
  TRY(plan.launch(device_));
  TRY(device_.wait());  // before anything that would wait for the kernel without a deadline, as an allocation does

  // A deterministic variant gives the same bits again, on the workspace as it left it.
  if (recipe.deterministic) {
    Pointers second = pointers;
    for (const auto& [name, expected] : test.outputs) {
      TRY_ASSIGN(auto output, GuardedTensor::make(device_, helpers_, expected.shape));
      second.tensors[name] = output.matrix().pointer;
      again.emplace(name, std::move(output));
    }
    if (zero_each) TRY(helpers_.poison(pointers.workspace, workspace.payload_bytes(), 0));
    TRY_ASSIGN(const auto repeat, LaunchPlan::make(device_, kernel, recipe, test.symbols, second, test.problem.reals));
    TRY(repeat.launch(device_));
    TRY(device_.wait());
  }

  // Comparing comes last: what it compares with must be what the reference wrote.
  TRY_ASSIGN(const std::string written, broken_seal(test));
  if (!written.empty()) {
    forget();  // no later variant is judged by what this one left
    return failed("guards", test, "wrote into " + written);
  }
  const bool bitwise = must_be_exact(test);
  const std::size_t slots = 6 * outputs.size() + 2 * test.inputs.size() + 2;
  if (slots > Helpers::kSlots)
    return bad_input("tensors", std::to_string(outputs.size() + test.inputs.size()),
                     "few enough for " + std::to_string(Helpers::kSlots) + " checks: 6 an output, 2 an input");
  TRY(helpers_.reset_verdicts());
  std::vector<std::pair<int, std::string>> what;  // slot -> what a wrong count there means
  int slot = 0;
  for (const auto& [name, output] : outputs) {
    const auto& expected = test.outputs.at(name);
    TRY(helpers_.compare(output.matrix(), expected.ref.pointer(), expected.err.pointer(), bitwise, test.op.tolerance.c,
                         slot));
    what.emplace_back(slot++, "compare:" + name);
    TRY(output.check(helpers_, slot));
    what.emplace_back(slot, "wrote outside of " + name);
    what.emplace_back(slot + 1, "wrote into the padding between rows of " + name);
    slot += 2;
    if (const auto other = again.find(name); other != again.end()) {
      TRY(helpers_.same_bytes(output.matrix().pointer, other->second.matrix().pointer, output.payload_bytes(), slot));
      what.emplace_back(slot++, "gave other bits the second time in " + name);
      TRY(other->second.check(helpers_, slot));
      what.emplace_back(slot, "wrote outside of " + name + " the second time");
      what.emplace_back(slot + 1, "wrote into the padding between rows of " + name + " the second time");
      slot += 2;
    }
  }
  for (const auto& [name, input] : test.inputs) {
    TRY(input.check(helpers_, slot));
    what.emplace_back(slot, "wrote around its input " + name);
    what.emplace_back(slot + 1, "wrote into the padding of its input " + name);
    slot += 2;
  }
  TRY(workspace.check(helpers_, slot));
  what.emplace_back(slot, "wrote outside of its workspace");
  TRY_ASSIGN(const auto verdicts, helpers_.verdicts());

  for (const auto& [at, text] : what) {
    const Verdict& verdict = verdicts[static_cast<std::size_t>(at)];
    if (verdict.count == 0) continue;
    if (text.rfind("compare:", 0) != 0)
      return failed("guards", test, text + " (" + std::to_string(verdict.count) + " places)");
    const std::string name = text.substr(8);
    const auto& expected = test.outputs.at(name);
    TRY_ASSIGN(const double got, helpers_.element(outputs.at(name).matrix(), verdict.first));
    TRY_ASSIGN(const double want, helpers_.element(expected.ref.pointer(), verdict.first));
    TRY_ASSIGN(const double err, helpers_.element(expected.err.pointer(), verdict.first));
    const auto cols = static_cast<std::uint64_t>(expected.shape.cols);
    const double allowed = test.op.tolerance.c * (epsilon(expected.shape.dtype) * std::abs(want) + err);
    return failed(gate, test,
                  std::to_string(verdict.count) + " elements of " + name + " wrong, the first at [" +
                      std::to_string(verdict.first / cols) + "," + std::to_string(verdict.first % cols) +
                      "]: " + number(got) + ", reference " + number(want) +
                      (bitwise ? ", must be equal once rounded" : ", allowed difference " + number(allowed)));
  }
  return wire::GateResult{gate, true, test.problem.key(test.op) + (bitwise ? ", bitwise" : "")};
}

Result<std::vector<wire::GateResult>> Verifier::run(const wire::MeasureJob& job, const OpSpec& op,
                                                    const Problem& problem, CUfunction kernel) {
  std::vector<wire::GateResult> gates;
  const auto gate = [&](const std::string& name, const Problem& size, Fill fill) -> Result<bool> {
    TRY_ASSIGN(const auto test, prepare(job, op, size, fill));
    TRY_ASSIGN(auto result, check(name, job, *test, kernel));
    gates.push_back(std::move(result));
    return gates.back().passed;
  };
  std::vector<Problem> edges;
  for (const auto& json : job.edges) {
    TRY_ASSIGN(auto edge, problem_from_json(op, json));
    edges.push_back(std::move(edge));
  }
  // Small sizes first: most wrong kernels are wrong there already, and they are cheap.
  for (const auto& edge : edges)
    for (const Fill fill : {Fill::integers, Fill::gaussian}) {
      TRY_ASSIGN(const bool passed, gate("edges", edge, fill));
      if (!passed) return gates;
    }
  for (const auto& [name, fill] : {std::pair{"exact", Fill::integers}, std::pair{"gaussian", Fill::gaussian}}) {
    TRY_ASSIGN(const bool passed, gate(name, problem, fill));
    if (!passed) return gates;
  }
  const auto volume = [](const Problem& size) {
    double product = 1;
    for (const auto& [name, extent] : size.dims) product *= static_cast<double>(extent);
    return product;
  };
  const auto largest =
      std::max_element(edges.begin(), edges.end(), [&](const auto& a, const auto& b) { return volume(a) < volume(b); });
  TRY_ASSIGN(const bool passed, gate("extremes", largest == edges.end() ? problem : *largest, Fill::extremes));
  if (passed)
    gates.push_back({"guards", true, std::to_string(gates.size()) + " runs, every band, padding and poison checked"});
  return gates;
}

}  // namespace tunerd::gpu
