// The real tuner-worker over its socket.
#include "gpu/cubin.h"
#include "worker_support.h"

using namespace tunerd;
using namespace tunerd::test;

TEST_CASE("a compile worker says hello with its version, then answers each job once, in order") {
  Worker worker({"--role", "compile"});
  CHECK(worker.hello.role == "compile");
  CHECK(worker.hello.error.empty());
  CHECK(worker.hello.nvrtc.find('.') != std::string::npos);
  const auto good = compile_job(kScale, "scale", "sm_90a"), bad = compile_job("nonsense", "scale");
  worker.send(to_json(good));
  worker.send(to_json(bad));
  worker.send(to_json(good));
  const auto first = must(wire::compile_result_from_json(must(receive(worker.process))));
  CHECK(first.id == good.id);
  CHECK(first.ok);
  must(gpu::find_kernel(first.cubin, "scale"));
  const auto second = must(wire::compile_result_from_json(must(receive(worker.process))));
  CHECK(second.id == bad.id);
  CHECK_FALSE(second.ok);
  CHECK(contains(second.error, "scale.cu(1): error"));
  const auto third = must(wire::compile_result_from_json(must(receive(worker.process))));
  CHECK(third.cubin == first.cubin);
}

TEST_CASE("a worker ends with 0 when its socket closes") {
  Worker compile({"--role", "compile"});
  compile.close_socket();
  CHECK(compile.end() == "exit 0");
  Worker measure({"--role", "measure", "--device-kind", "replay", "--recording", TUNERD_SOURCE_DIR "/tests/data"});
  measure.close_socket();
  CHECK(measure.end() == "exit 0");
}

TEST_CASE("garbage, a frame cut short, and a message of another kind each end the worker with 1, unanswered") {
  const std::string frame = wire::encode_frame(to_json(compile_job(kScale, "scale")));
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), frame.substr(0, frame.size() / 2), frame.substr(0, 5),
        wire::encode_frame({{"type", "compile"}, {"id", 1}}), wire::encode_frame(to_json(wire::MeasureJob{}))}) {
    CAPTURE(bytes.size());
    Worker worker({"--role", "compile"});
    worker.send_bytes(bytes);
    ::shutdown(worker.process.socket(), SHUT_WR);
    CHECK_FALSE(receive(worker.process));
    CHECK(worker.end() == "exit 1");
  }
}

TEST_CASE("a compile that never ends is killed at the parent's deadline, with nothing left of it") {
  worker_host::Process process = must(worker_host::Process::spawn(kWorker, {"--role", "compile"}));
  must(receive(process));
  const pid_t pid = process.pid();
  must(wire::send_frame(process.socket(), to_json(compile_job(kEndless, "endless")), -1, kPatienceMs));
  const auto answer = receive(process, 1500);
  CHECK(must_fail(answer).code == Code::deadline);
  CHECK(is_alive(pid));
  CHECK(process.kill() == "signal 9");
  CHECK_FALSE(is_alive(pid));
}

TEST_CASE("a compile worker over its memory cap answers the job it has, then ends with 0") {
  Worker worker({"--role", "compile", "--max-rss-mib", "1"});
  CHECK(worker.compile(compile_job(kScale, "scale")).ok);
  CHECK(worker.end() == "exit 0");
}

TEST_CASE("without room for NVRTC the hello says what is missing in one sentence, and the worker ends with 1") {
  // The library maps more than this.
  auto process = must(
      worker_host::Process::spawn("/bin/sh", {"-c", "ulimit -v 100000; exec " + kWorker.string() + " --role compile"}));
  const auto hello = must(wire::worker_hello_from_json(must(receive(process))));
  CHECK(hello.nvrtc.empty());
  CHECK(contains(hello.error, "NVRTC was not found"));
  CHECK(contains(hello.error, "libnvrtc.so"));
  CHECK_FALSE(contains(hello.error, "\n"));
  CHECK_FALSE(receive(process));
  std::string ended;
  for (int i = 0; i < 1000 && ended.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ended = process.try_wait();
  }
  CHECK(ended == "exit 1");
}

TEST_CASE("a replay worker answers from its recordings, and says what it has not got") {
  Worker worker({"--role", "measure", "--device-kind", "replay", "--recording",
                 TUNERD_SOURCE_DIR "/tests/data/rmsnorm_0.recording.json"});
  CHECK(worker.hello.role == "measure");
  CHECK(worker.hello.device_kind == "replay");
  CHECK(worker.hello.device_class.kind == "replay");
  wire::MeasureJob job;
  job.id = 5;
  job.op = job.problem = Json::object();
  job.problem_key = "rmsnorm{rows=2048,cols=8192,dtype=bf16}";
  job.variant = "rmsnorm_rows{items=4,rpb=1,tpr=256,vec=8,waves=0}";
  worker.send(to_json(job));
  const auto known = must(wire::measure_result_from_json(must(receive(worker.process))));
  CHECK(known.id == 5);
  CHECK(known.status == "ok");
  CHECK(known.median_us > 0);
  job.variant = "rmsnorm_rows{items=5}";
  worker.send(to_json(job));
  const auto unknown = must(wire::measure_result_from_json(must(receive(worker.process))));
  CHECK(unknown.status == "unsupported");
  CHECK(contains(unknown.error, "items=5"));
}

TEST_CASE("a measure worker that has no device says why in its hello, and ends with 1") {
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--device", "1000"},
                                                {"--device-kind", "replay", "--recording", "/no/such/file"},
                                                {"--device-kind", "cude"}}) {
    std::vector<std::string> arguments{"--role", "measure"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    Worker worker(arguments);
    CAPTURE(worker.hello.error);
    CHECK_FALSE(worker.hello.error.empty());
    CHECK_FALSE(receive(worker.process));
    CHECK(worker.end() == "exit 1");
  }
}

TEST_CASE("bad flags end with 2 before anything is opened") {
  for (const std::vector<std::string>& flags : {std::vector<std::string>{},
                                                {"--role", "cook"},
                                                {"--rool", "compile"},
                                                {"--role"},
                                                {"--role", "compile", "--fd", "x"},
                                                {"--role", "compile", "--fd", "3.5"},
                                                {"--role", "measure", "--device", "-1"},
                                                {"--role", "measure", "--launch-deadline-s", "0"}}) {
    worker_host::Process process = must(worker_host::Process::spawn(kWorker, flags));
    CHECK_FALSE(receive(process));
    std::string ended;
    for (int i = 0; i < 1000 && ended.empty(); ++i) {
      ended = process.try_wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    CHECK(ended == "exit 2");
  }
}
