#include "worker.h"

#include <fcntl.h>

#include "wire/frame.h"

namespace tunerd::daemon {
namespace {

constexpr auto kHelloDeadline = std::chrono::seconds(60);  // a CUDA context on a busy host takes seconds
constexpr auto kFrameDeadline = std::chrono::seconds(30);

}  // namespace

Task<Result<wire::WorkerHello>> Worker::ensure() {
  if (socket_ && process_.try_wait().empty()) co_return hello_;
  stop();
  auto spawned = worker_host::Process::spawn(program_, arguments_);
  if (!spawned) co_return Unexpected(spawned.error());
  process_ = std::move(*spawned);
  socket_.emplace(loop_);
  boost::system::error_code error;
  socket_->assign(asio::local::stream_protocol(), process_.release_socket(), error);
  if (error) co_return fail(Code::internal, "Cannot watch the worker's socket: " + error.message());
  auto body =
      co_await read_frame(*socket_, wire::kMaxReplyBytes, Clock::now() + kHelloDeadline, kFrameDeadline, nullptr);
  auto hello = body ? wire::worker_hello_from_json(*body) : Result<wire::WorkerHello>(Unexpected(body.error()));
  if (!hello) {
    const std::string ended = process_.kill();
    socket_.reset();
    co_return fail(Code::device, "The worker did not start (" + ended + "): " + hello.error().text());
  }
  if (!hello->error.empty()) {
    stop();
    co_return fail(Code::missing, hello->error);
  }
  hello_ = std::move(*hello);
  jobs_done_ = 0;
  co_return hello_;
}

Task<Result<Json>> Worker::call(const Json& job, Clock::duration limit) {
  const auto deadline = Clock::now() + limit;
  const std::string frame = wire::encode_frame(job);
  auto sent = co_await write_bytes(*socket_, frame, -1, deadline);
  Result<Json> body = Unexpected(Error{});
  if (sent)
    body = co_await read_frame(*socket_, wire::kMaxReplyBytes, deadline, kFrameDeadline, nullptr);
  else
    body = Unexpected(sent.error());
  if (body) {
    ++jobs_done_;
    co_return body;
  }
  const bool hung = body.error().code == Code::deadline;
  const std::string ended = process_.kill();
  socket_.reset();
  if (hung)
    co_return fail(Code::deadline,
                   "did not end within " +
                       std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(limit).count()) +
                       " ms and was killed");
  co_return fail(Code::device, "ended its worker (" + ended + ")");
}

void Worker::stop() {
  if (socket_) {
    boost::system::error_code ignored;
    socket_->close(ignored);
  }
  socket_.reset();
  process_.kill();
}

}  // namespace tunerd::daemon
