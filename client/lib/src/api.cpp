// The C ABI. Nothing may be thrown across it: every function runs inside guarded().
#include <cstring>
#include <exception>
#include <new>

#include "client.h"

namespace {

using tunerd::Code;
using tunerd::Error;

struct LastError {
  int status = TUNER_OK;
  Error error;
  std::string text;
};
thread_local LastError last_error;

int status_of(Code code) { return static_cast<int>(code) + 1; }
static_assert(static_cast<int>(Code::invalid_argument) + 1 == TUNER_INVALID_ARGUMENT);
static_assert(static_cast<int>(Code::not_found) + 1 == TUNER_NOT_FOUND);
static_assert(static_cast<int>(Code::missing) + 1 == TUNER_MISSING);
static_assert(static_cast<int>(Code::unsupported) + 1 == TUNER_UNSUPPORTED);
static_assert(static_cast<int>(Code::corrupt) + 1 == TUNER_CORRUPT);
static_assert(static_cast<int>(Code::io) + 1 == TUNER_IO);
static_assert(static_cast<int>(Code::deadline) + 1 == TUNER_DEADLINE);
static_assert(static_cast<int>(Code::busy) + 1 == TUNER_BUSY);
static_assert(static_cast<int>(Code::denied) + 1 == TUNER_DENIED);
static_assert(static_cast<int>(Code::compile_failed) + 1 == TUNER_COMPILE_FAILED);
static_assert(static_cast<int>(Code::device) + 1 == TUNER_DEVICE);
static_assert(static_cast<int>(Code::internal) + 1 == TUNER_INTERNAL);
static_assert(static_cast<int>(tunerd::wire::Wait::now) == TUNER_NOW);
static_assert(static_cast<int>(tunerd::wire::Wait::tuned) == TUNER_TUNED);
static_assert(static_cast<int>(tunerd::wire::Wait::cached) == TUNER_CACHED);

int failed(Error error) {
  last_error.status = status_of(error.code);
  last_error.text = error.text();
  last_error.error = std::move(error);
  return last_error.status;
}

int failed_without_words(Code code) noexcept {
  last_error.status = status_of(code);
  last_error.text.clear();
  last_error.error = Error{};
  return last_error.status;
}

template <class F>
int guarded(F&& body) noexcept {
  try {
    try {
      tunerd::Status status = body();
      return status ? static_cast<int>(TUNER_OK) : failed(std::move(status.error()));
    } catch (const std::exception& error) {
      return failed(Error{Code::internal, std::string("unexpected: ") + error.what(), {}, {}, {}, {}});
    }
  } catch (...) {
    return failed_without_words(Code::internal);  // no memory even for the sentence
  }
}

tunerd::Unexpected null_argument(const char* name) { return tunerd::bad_input(name, "null", "a pointer"); }

// Copies a caller's struct of an older, shorter version over today's defaults.
template <class T>
tunerd::Result<T> sized(const T* given, const char* name, std::size_t least) {
  if (given->struct_size < least || given->struct_size > 4096)
    return tunerd::bad_input(std::string(name) + ".struct_size", std::to_string(given->struct_size),
                             "sizeof(" + std::string(name) + "), " + std::to_string(sizeof(T)));
  T copy{};
  std::memcpy(&copy, given, std::min(given->struct_size, sizeof(T)));
  return copy;
}

// Writes no more than the caller's version of the struct holds.
template <class T>
void copy_out(T facts, T* out) {
  const std::size_t size = std::min(out->struct_size, sizeof(T));
  facts.struct_size = out->struct_size;
  std::memcpy(out, &facts, size);
}

}  // namespace

extern "C" {

const char* tuner_last_error(const tuner_client*) { return last_error.text.c_str(); }

int tuner_last_error_parts(const tuner_client*, tuner_error_parts* parts) {
  // Does not run inside guarded(): it must not replace what it reports.
  if (parts == nullptr || parts->struct_size < sizeof(std::size_t)) return TUNER_INVALID_ARGUMENT;
  const Error& error = last_error.error;
  copy_out(tuner_error_parts{sizeof(tuner_error_parts), last_error.status, error.message.c_str(), error.field.c_str(),
                             error.value.c_str(), error.expected.c_str(), error.suggestion.c_str()},
           parts);
  return TUNER_OK;
}

int tuner_connect(const tuner_options* options, tuner_client** client) {
  return guarded([&]() -> tunerd::Status {
    if (client == nullptr) return null_argument("client");
    tuner_options used = TUNER_OPTIONS_INIT;
    if (options != nullptr) {
      TRY_ASSIGN(used, sized(options, "tuner_options", sizeof(std::size_t)));
    }
    TRY_ASSIGN(auto opened, tuner_client::open(used));
    *client = opened.release();
    return {};
  });
}

int tuner_close(tuner_client* client) {
  return guarded([&]() -> tunerd::Status {
    if (client == nullptr) return {};
    if (client->on_own_thread())
      return tunerd::bad_input("thread", "the upgrade callback", "another thread: closing waits for the callback");
    delete client;
    return {};
  });
}

int tuner_connected(const tuner_client* client) { return client != nullptr && client->connected() ? 1 : 0; }

int tuner_get(tuner_client* client, const char* op, const tuner_dim* dims, size_t dim_count,
              const tuner_attribute* attributes, size_t attribute_count, int wait, int64_t deadline_ms,
              tuner_kernel** kernel) {
  return guarded([&]() -> tunerd::Status {
    if (client == nullptr) return null_argument("client");
    if (op == nullptr) return null_argument("op");
    if (kernel == nullptr) return null_argument("kernel");
    if (wait < TUNER_NOW || wait > TUNER_CACHED)
      return tunerd::bad_input("wait", std::to_string(wait), "TUNER_NOW, TUNER_TUNED or TUNER_CACHED");
    TRY_ASSIGN(auto found, client->get({op, dims, dim_count, attributes, attribute_count},
                                       static_cast<tunerd::wire::Wait>(wait), deadline_ms));
    *kernel = found.detach();
    return {};
  });
}

void tuner_kernel_release(tuner_kernel* kernel) {
  guarded([&]() -> tunerd::Status {
    if (kernel != nullptr) kernel->release();
    return {};
  });
}

int tuner_kernel_info(const tuner_kernel* kernel, tuner_kernel_facts* facts) {
  return guarded([&]() -> tunerd::Status {
    if (kernel == nullptr) return null_argument("kernel");
    if (facts == nullptr) return null_argument("facts");
    TRY(sized(facts, "tuner_kernel_facts", sizeof(std::size_t)));
    const tunerd::client::KernelState& state = kernel->state();
    const tunerd::wire::GetAnswer& answer = state.answer();
    tuner_kernel_facts out{};
    out.op = answer.op.c_str();
    out.problem = answer.problem.c_str();
    out.variant = answer.variant.c_str();
    out.quality = to_string(answer.quality).data();
    out.source = answer.measured ? "measured" : "predicted";
    out.arch = answer.arch.c_str();
    out.t_sol_us = answer.sol.t_sol_us;
    out.time_us = answer.time_us;
    out.sol_fraction = answer.sol_fraction;
    out.generation = answer.generation;
    out.cubin = state.image().bytes().data();
    out.cubin_bytes = state.image().bytes().size();
    out.json = state.json().c_str();
    copy_out(out, facts);
    return {};
  });
}

int tuner_launch(tuner_kernel* kernel, void* stream, const tuner_launch_args* args) {
  return guarded([&]() -> tunerd::Status {
    if (kernel == nullptr) return null_argument("kernel");
    if (args == nullptr) return null_argument("args");
    TRY_ASSIGN(const tuner_launch_args copy, sized(args, "tuner_launch_args", sizeof(std::size_t)));
    return kernel->state().launch(stream, copy);
  });
}

int tuner_kernel_load(tuner_kernel* kernel) {
  return guarded([&]() -> tunerd::Status {
    if (kernel == nullptr) return null_argument("kernel");
    return kernel->state().load();
  });
}

int tuner_kernel_workspace(tuner_kernel* kernel, const tuner_dim* dims, size_t dim_count, int64_t* bytes,
                           int64_t* alignment, int* zeroed) {
  return guarded([&]() -> tunerd::Status {
    if (kernel == nullptr) return null_argument("kernel");
    TRY_ASSIGN(const auto need, kernel->state().workspace_need(dims, dim_count));
    if (bytes != nullptr) *bytes = need.bytes;
    if (alignment != nullptr) *alignment = need.align_bytes;
    if (zeroed != nullptr) *zeroed = need.zeroed ? 1 : 0;
    return {};
  });
}

int tuner_subscribe(tuner_client* client, tuner_upgrade_fn callback, void* user) {
  return guarded([&]() -> tunerd::Status {
    if (client == nullptr) return null_argument("client");
    return client->subscribe(callback, user);
  });
}

}  // extern "C"
