// Every gate over a spread of every template's variants on a real GPU, without the daemon: what is wrong with which
// kernel, and how fast the rest are.
//
//   gpu-variants TEMPLATES DEVICES SHAPES.json [STRIDE] [OUT.json]
//
// Takes every STRIDE-th valid variant of each template for each problem of the shape file. Exits 1 when any is wrong or
// faults.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "model/environment.h"
#include "model/sol.h"
#include "search/space.h"
#include "wire/frame.h"
#include "worker_host/compile_pool.h"
#include "worker_host/process.h"

using namespace tunerd;

namespace {

constexpr int kHelloMs = 60'000, kJobMs = 60'000;

[[noreturn]] void die(const Error& error) {
  std::fprintf(stderr, "gpu-variants: %s\n", error.text().c_str());
  std::exit(2);
}

template <class T>
T must(Result<T> result) {
  if (!result) die(result.error());
  return std::move(*result);
}

class MeasureWorker {
 public:
  MeasureWorker() { restart(); }
  wire::WorkerHello hello;

  wire::MeasureResult run(const wire::MeasureJob& job) {
    const auto sent = wire::send_frame(process_.socket(), to_json(job), -1, kJobMs);
    auto body = sent ? wire::receive_frame(process_.socket(), wire::kMaxReplyBytes, nullptr, kJobMs)
                     : Result<Json>(Unexpected(sent.error()));
    auto result = body ? wire::measure_result_from_json(*body) : Result<wire::MeasureResult>(Unexpected(body.error()));
    if (result && result->status != "fault") return *result;
    wire::MeasureResult fault;
    fault.status = "fault";
    fault.error = result ? result->error : result.error().text();
    restart();
    return fault;
  }

 private:
  void restart() {
    process_ = must(worker_host::Process::spawn(worker_host::worker_path(), {"--role", "measure"}));
    hello = must(wire::worker_hello_from_json(
        must(wire::receive_frame(process_.socket(), wire::kMaxReplyBytes, nullptr, kHelloMs))));
    if (!hello.error.empty()) die(Error{Code::missing, hello.error, {}, {}, {}, {}});
  }
  worker_host::Process process_;
};

wire::CompileJob compile_job(const SourceClosure& closure, const std::string& entry,
                             const std::vector<std::string>& defines, const std::string& arch) {
  wire::CompileJob job;
  job.name = entry;
  job.source_name = closure.name;
  job.source = closure.text;
  job.headers = closure.headers;
  job.options = fixed_nvrtc_options();
  job.options.insert(job.options.end(), defines.begin(), defines.end());
  job.arch = arch;
  job.entry = entry;
  return job;
}

struct Tally {
  int tried = 0, ok = 0, wrong = 0, fault = 0, rejected = 0, other = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: gpu-variants TEMPLATES DEVICES SHAPES.json [STRIDE] [OUT.json]\n");
    return 2;
  }
  const auto catalog = must(Catalog::load({argv[1]}));
  const auto shapes = must(read_json_file(argv[3]));
  const std::size_t stride = argc > 4 ? std::strtoul(argv[4], nullptr, 10) : 7;
  MeasureWorker worker;
  const auto device = must(representative_device(must(load_devices(argv[2])), worker.hello.device_class.arch));
  std::printf("%s, driver %s, %s\n", worker.hello.product_name.c_str(), worker.hello.driver.c_str(),
              worker.hello.device_class.key().c_str());
  worker_host::CompilePoolOptions pool;
  pool.worker = worker_host::worker_path();
  Json report = Json::array();
  int failures = 0;
  for (const auto& fields : shapes.at("problems")) {
    const auto started = std::chrono::steady_clock::now();
    const OpEntry& entry = *must(catalog.op(fields.at("op").get<std::string>()));
    const Problem problem = must(make_problem(entry.op, fields));
    auto space = must(enumerate_space(entry, problem, device));
    const auto order = must(rank_space(space, entry, problem, device));
    std::map<std::string, std::size_t> seen;
    std::vector<const Candidate*> chosen;
    for (const auto index : order)
      if (seen[space[index].variant.template_name]++ % stride == 0) chosen.push_back(&space[index]);
    std::vector<KernelSpec> kernels;
    std::vector<wire::CompileJob> jobs;
    for (const auto* candidate : chosen) {
      kernels.push_back(must(instantiate(candidate->source->manifest, entry.op, candidate->variant, problem, device)));
      jobs.push_back(
          compile_job(candidate->source->closure, kernels.back().recipe.entry, kernels.back().defines, device.arch));
    }
    if (!kernels.empty())
      jobs.push_back(compile_job(entry.reference, entry.op.reference.entry, kernels.front().defines, device.arch));
    std::vector<wire::CompileResult> compiled(jobs.size());
    if (auto done = worker_host::compile_all(
            pool, jobs, [&](std::size_t i, wire::CompileResult result) { compiled[i] = std::move(result); });
        !done)
      die(done.error());
    const double compile_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    if (compiled.empty() || !compiled.back().ok) {
      std::printf("FAILED  %s: reference: %s\n", problem.key(entry.op).c_str(),
                  compiled.empty() ? "no variant" : compiled.back().error.c_str());
      ++failures;
      continue;
    }
    std::map<std::string, Tally> tally;
    std::map<std::string, std::pair<double, std::string>> best;
    std::map<std::string, int> shown;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const std::string variant = chosen[i]->variant.text(), name = chosen[i]->variant.template_name;
      auto& count = tally[name];
      ++count.tried;
      Json row{{"problem", problem.key(entry.op)},
               {"variant", variant},
               {"registers", compiled[i].registers},
               {"predicted_us", chosen[i]->predicted_us}};
      std::string status = compiled[i].ok ? compiled[i].rejected.empty() ? "" : "rejected" : "compile_failed",
                  error = compiled[i].ok ? compiled[i].rejected : compiled[i].error;
      if (status.empty()) {
        wire::MeasureJob job;
        job.variant = variant;
        job.problem_key = problem.key(entry.op);
        job.op = entry.op.document;
        job.problem = problem.to_json();
        job.recipe = kernels[i].recipe;
        job.cubin = compiled[i].cubin;
        job.reference_entry = entry.op.reference.entry;
        job.reference_cubin = compiled.back().cubin;
        for (const auto& edge : must(edge_problems(chosen[i]->source->manifest, entry.op, kernels[i], problem, device)))
          job.edges.push_back(edge.to_json());
        job.memory_limit_bytes = 120ll << 30;
        const auto result = worker.run(job);
        status = result.status;
        error = result.error;
        row["time_us"] = result.median_us;
        row["wall_ms"] = result.wall_ms;
        row["gates"] = result.gates.size();
        if (status == "ok" && (!best.contains(name) || result.median_us < best[name].first))
          best[name] = {result.median_us, variant};
      }
      count.ok += status == "ok";
      count.wrong += status == "wrong";
      count.fault += status == "fault";
      count.rejected += status == "rejected";
      count.other += status != "ok" && status != "wrong" && status != "fault" && status != "rejected";
      if (status != "ok" && shown[name + status]++ < 3)
        std::printf("%s  %s  %s\n    %s\n", status.c_str(), variant.c_str(), problem.key(entry.op).c_str(),
                    error.substr(0, 300).c_str());
      row["status"] = status;
      row["error"] = error;
      report.push_back(row);
      std::fflush(stdout);
    }
    const double sol_us = must(speed_of_light(entry.op, problem, device)).t_sol_us;
    std::printf("%s  space %zu valid, compile %.1f s, all %.1f s, T_SOL %.1f us\n", problem.key(entry.op).c_str(),
                order.size(), compile_s,
                std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count(), sol_us);
    for (const auto& [name, count] : tally) {
      failures += count.wrong + count.fault + count.other;
      std::printf("   %-18s tried %3d ok %3d wrong %3d fault %3d rejected %3d other %3d", name.c_str(), count.tried,
                  count.ok, count.wrong, count.fault, count.rejected, count.other);
      if (best.contains(name))
        std::printf("  best %.2f us (%.2f) %s", best[name].first, sol_us / best[name].first, best[name].second.c_str());
      std::printf("\n");
    }
    std::fflush(stdout);
  }
  if (argc > 5)
    if (auto written = write_file_atomically(argv[5], report.dump(1)); !written) die(written.error());
  std::printf("%d variants failed\n", failures);
  return failures == 0 ? 0 : 1;
}
