#include "worker_host/compile_pool.h"

#include <map>

#include "worker_support.h"

using namespace tunerd;
using namespace tunerd::test;

namespace {

worker_host::CompilePoolOptions options(std::size_t workers = 2) {
  worker_host::CompilePoolOptions out;
  out.worker = kWorker;
  out.workers = workers;
  return out;
}

std::map<std::size_t, wire::CompileResult> compile(const worker_host::CompilePoolOptions& how,
                                                   const std::vector<wire::CompileJob>& jobs) {
  std::map<std::size_t, wire::CompileResult> results;
  must(worker_host::compile_all(how, jobs, [&](std::size_t index, wire::CompileResult result) {
    CHECK_FALSE(results.contains(index));
    CHECK(result.id == jobs[index].id);
    results[index] = std::move(result);
  }));
  CHECK(results.size() == jobs.size());
  return results;
}

}  // namespace

TEST_CASE("every job is answered once, good ones with a cubin and bad ones with their error") {
  std::vector<wire::CompileJob> jobs;
  for (int i = 0; i < 9; ++i) jobs.push_back(compile_job(i % 3 == 2 ? "broken" : kScale, "scale"));
  const auto results = compile(options(), jobs);
  for (const auto& [index, result] : results) {
    CHECK(result.ok == (index % 3 != 2));
    CHECK(result.error.empty() == result.ok);
  }
}

TEST_CASE("a compile that never ends is killed at its deadline and named; the jobs beside and behind it compile") {
  auto how = options();
  how.deadline_ms = 2500;
  std::vector<wire::CompileJob> jobs{compile_job(kEndless, "endless")};
  for (int i = 0; i < 4; ++i) jobs.push_back(compile_job(kScale, "scale"));
  const auto started = std::chrono::steady_clock::now();
  const auto results = compile(how, jobs);
  CHECK(std::chrono::steady_clock::now() - started >= std::chrono::milliseconds(2500));
  CHECK_FALSE(results.at(0).ok);
  CHECK(contains(results.at(0).error, "2500 ms"));
  CHECK(contains(results.at(0).error, "killed"));
  for (std::size_t i = 1; i < jobs.size(); ++i) CHECK(results.at(i).ok);
}

TEST_CASE("one worker alone goes on after it was killed, and is recycled after its share of jobs") {
  auto how = options(1);
  how.deadline_ms = 2000;
  how.jobs_per_worker = 2;
  const auto results =
      compile(how, {compile_job(kScale, "scale"), compile_job(kEndless, "endless"), compile_job(kScale, "scale"),
                    compile_job(kScale, "scale"), compile_job(kScale, "scale"), compile_job(kScale, "scale")});
  for (const auto& [index, result] : results) CHECK(result.ok == (index != 1));
}

TEST_CASE("a worker that dies in the middle of a job fails that job alone, and says how it ended") {
  // The first worker may use two seconds of processor time: the endless compile is what takes them.
  const auto folder = std::filesystem::temp_directory_path() / ("pool." + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const auto script = folder / "worker";
  std::ofstream(script) << "#!/bin/sh\nif mkdir '" << (folder / "first").string()
                        << "' 2>/dev/null; then ulimit -S -t 2; fi\nexec '" << kWorker.string() << "' \"$@\"\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  auto how = options(1);
  how.worker = script;
  const auto results = compile(how, {compile_job(kEndless, "endless"), compile_job(kScale, "scale")});
  CHECK_FALSE(results.at(0).ok);
  CHECK(contains(results.at(0).error, "signal 24"));
  CHECK(results.at(1).ok);
  std::filesystem::remove_all(folder);
}

TEST_CASE("no jobs is no work; a worker that is not there is one error for all") {
  CHECK(compile(options(), {}).empty());
  auto how = options();
  how.worker = "/no/such/worker";
  const auto started =
      worker_host::compile_all(how, {compile_job(kScale, "scale")},
                               [](std::size_t, wire::CompileResult) { FAIL("nothing can have been compiled"); });
  CHECK(contains(must_fail(started).text(), "/no/such/worker"));
}

TEST_CASE("the NVRTC version is what a fresh worker reports") {
  CHECK(must(worker_host::nvrtc_version(options())).find('.') != std::string::npos);
  auto how = options();
  how.worker = "/bin/true";
  CHECK_FALSE(worker_host::nvrtc_version(how));
}
