#include "client.h"

#include <algorithm>
#include <cerrno>

#include "model/paths.h"

using namespace tunerd;          // NOLINT: one file, defines members of a C handle
using namespace tunerd::client;  // NOLINT

namespace {

using std::chrono::milliseconds;
constexpr std::int64_t kMaxDeadlineMs = 3'600'000;
constexpr milliseconds kGrace{500};  // lets the daemon's own word about a deadline arrive
constexpr milliseconds kRefreshDeadline{60'000};
constexpr milliseconds kSubscribeDeadline{10'000};

Unexpected corrupt(std::string message, std::string field, std::string value, std::string expected) {
  return Unexpected(
      Error{Code::corrupt, std::move(message), std::move(field), std::move(value), std::move(expected), {}});
}

Json get_fields(const ProblemKey& key, wire::Wait wait, std::int64_t deadline_ms, bool tune) {
  wire::GetRequest request;
  request.op = key.op;
  request.fields = key.fields();
  request.wait = wait;
  request.deadline_ms = deadline_ms;
  request.tune = tune;
  return wire::to_json(request);
}

// A kernel that waiting for tuning could not improve.
bool is_settled(const KernelState& state) {
  return state.answer().quality == wire::Quality::exact && state.answer().measured;
}

}  // namespace

Result<std::unique_ptr<tuner_client>> tuner_client::open(const tuner_options& options) {
  ConnectionOptions connection;
  connection.socket_path = options.socket_path != nullptr ? options.socket_path : default_socket().string();
  connection.client_name = options.client_name != nullptr ? options.client_name : program_invocation_short_name;
  if (options.deadline_ms < 0 || options.deadline_ms > kMaxDeadlineMs)
    return bad_input("deadline_ms", std::to_string(options.deadline_ms), "0 to " + std::to_string(kMaxDeadlineMs));
  if (options.deadline_ms != 0) connection.deadline_ms = static_cast<int>(options.deadline_ms);
  if (options.max_kernels < 0 || options.max_kernels > 1 << 20)
    return bad_input("max_kernels", std::to_string(options.max_kernels), "0 to 1048576");
  std::unique_ptr<tuner_client> client(new tuner_client());
  if (options.max_kernels != 0) client->max_kernels_ = static_cast<std::size_t>(options.max_kernels);
  tuner_client* raw = client.get();
  // connection_ is set before the thread can reach a callback that uses it: pushes come only after subscribe().
  TRY_ASSIGN(client->connection_,
             Connection::open(std::move(connection), {[raw](const Json& message) { raw->on_push(message); },
                                                      [raw] { raw->on_reconnected(); }}));
  return client;
}

// Not reset(): a handler that runs until the thread is joined still reaches through connection_.
tuner_client::~tuner_client() {
  if (connection_) connection_->stop();
}

KernelRef tuner_client::held(const ProblemView& problem) const {
  const std::shared_lock lock(kernels_mutex_);
  const auto found = kernels_.find(problem);
  return found == kernels_.end() ? KernelRef() : KernelRef::share(found->second.get());
}

Result<KernelRef> tuner_client::get(const ProblemView& problem, wire::Wait wait, std::int64_t deadline_ms) {
  if (deadline_ms == 0) deadline_ms = 60'000;
  if (deadline_ms < 1 || deadline_ms > kMaxDeadlineMs)
    return bad_input("deadline_ms", std::to_string(deadline_ms), "0 to " + std::to_string(kMaxDeadlineMs));
  TRY(check(problem));
  KernelRef known = held(problem);
  if (known && (wait != wire::Wait::tuned || is_settled(known->state()))) return known;

  ProblemKey key = to_key(problem);
  TRY_ASSIGN(Reply reply,
             connection_->call("get", get_fields(key, wait, deadline_ms, true), milliseconds(deadline_ms) + kGrace));
  TRY_ASSIGN(auto state, state_from(key, std::move(reply)));
  if (known) {
    known->swap(std::move(state));
    return known;
  }
  return keep(std::move(key), std::move(state));
}

Result<std::unique_ptr<KernelState>> tuner_client::state_from(const ProblemKey& key, Reply reply) {
  TRY_ASSIGN(wire::GetAnswer answer, wire::get_answer_from_json(reply.fields));
  if (answer.op != key.op) return corrupt("the daemon answered for another op", "op", answer.op, key.op);
  const auto dims = answer.problem_json.find("dims");
  for (const auto& [name, value] : key.dims) {
    if (dims == answer.problem_json.end() || !dims->is_object()) break;  // KernelState says so
    const auto found = dims->find(name);
    if (found != dims->end() && *found != value)
      return corrupt("the daemon answered for another size", name, found->dump().substr(0, 32), std::to_string(value));
  }
  TRY_ASSIGN(auto image, images_.map(reply.passed, answer.kernel_digest, answer.cubin_bytes));
  return KernelState::make(std::move(answer), std::move(image), reply.fields.dump());
}

Result<KernelRef> tuner_client::keep(ProblemKey key, std::unique_ptr<KernelState> state) {
  const std::lock_guard lock(kernels_mutex_);
  if (const auto found = kernels_.find(key); found != kernels_.end()) {
    // Another thread asked for the same meanwhile.
    found->second->swap(std::move(state));
    return KernelRef::share(found->second.get());
  }
  if (kernels_.size() >= max_kernels_) {
    std::erase_if(kernels_, [](const auto& entry) { return entry.second->only_reference(); });
    if (kernels_.size() >= max_kernels_)
      return Unexpected(Error{Code::busy,
                              "this client holds as many kernels as it may",
                              "max_kernels",
                              std::to_string(kernels_.size()),
                              "some released, or a higher max_kernels",
                              {}});
  }
  auto kernel = KernelRef::adopt(new tuner_kernel(key, std::move(state)));
  KernelRef mine = KernelRef::share(kernel.get());
  kernels_.emplace(std::move(key), std::move(kernel));
  return mine;
}

Status tuner_client::subscribe(tuner_upgrade_fn callback, void* user) {
  {
    const std::lock_guard lock(upgrade_mutex_);
    callback_ = {callback, user};
  }
  // Before the request: a push may follow its reply at once.
  const bool before = subscribed_.exchange(true);
  if (auto reply = connection_->call("subscribe", Json::object(), kSubscribeDeadline); !reply) {
    subscribed_ = before;
    return Unexpected(reply.error());
  }
  refresh_all();
  return {};
}

// Asks for every kernel held again: what became better while nobody listened arrives, and the daemon's session knows
// which problems later upgrades are to be pushed for.
void tuner_client::refresh_all() {
  {
    const std::shared_lock kernels(kernels_mutex_);
    const std::lock_guard lock(upgrade_mutex_);
    to_refresh_.clear();
    for (const auto& [key, kernel] : kernels_) to_refresh_.push_back(KernelRef::share(kernel.get()));
  }
  refresh_next();
}

void tuner_client::on_push(const Json& message) {
  const auto type = message.find("type");
  const auto answer = message.find("answer");
  if (!subscribed_ || type == message.end() || *type != "upgrade" || answer == message.end() || !answer->is_object())
    return;
  const auto problem = answer->find("problem");
  const auto generation = answer->find("generation");
  if (problem == answer->end() || !problem->is_string() || generation == answer->end() ||
      !generation->is_number_unsigned())
    return;
  {
    const std::shared_lock kernels(kernels_mutex_);
    const std::lock_guard lock(upgrade_mutex_);
    for (const auto& [key, kernel] : kernels_) {
      if (kernel->state().answer().problem == *problem && kernel->seen_generation() < generation->get<std::uint64_t>())
        to_refresh_.push_back(KernelRef::share(kernel.get()));
    }
  }
  refresh_next();
}

void tuner_client::on_reconnected() {
  if (!subscribed_) return;
  connection_->post("subscribe", Json::object(), kSubscribeDeadline, [](const Result<Reply>&) {});
  refresh_all();
}

void tuner_client::refresh_next() {
  KernelRef next;
  {
    const std::lock_guard lock(upgrade_mutex_);
    if (refreshing_ || to_refresh_.empty()) return;
    next = std::move(to_refresh_.front());
    to_refresh_.pop_front();
    refreshing_ = true;
  }
  Json fields = get_fields(next->key(), wire::Wait::now, kRefreshDeadline.count(), false);
  auto shared = std::make_shared<KernelRef>(std::move(next));
  connection_->post("get", std::move(fields), kRefreshDeadline,
                    [this, shared](Result<Reply> reply) { on_refreshed(std::move(*shared), std::move(reply)); });
}

void tuner_client::on_refreshed(KernelRef kernel, Result<Reply> reply) {
  bool swapped = false;
  if (reply) {
    // A refused or broken answer changes nothing: the kernel held stays.
    if (auto state = state_from(kernel->key(), std::move(*reply)))
      swapped = kernel->swap(std::move(*state)) == tuner_kernel::Swap::swapped;
  }
  Callback callback;
  {
    const std::lock_guard lock(upgrade_mutex_);
    callback = callback_;
    refreshing_ = false;
    if (!reply && !connection_->connected()) to_refresh_.clear();  // asked again after the next connect
  }
  if (swapped && callback.function != nullptr)
    callback.function(kernel.get(), kernel->state().answer().generation, callback.user);
  refresh_next();
}
