// The C++ face of tuner.h: handles that give themselves back, errors as exceptions. Header only, so that no C++ type
// crosses the library's border. Conventions as in tuner.h.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tuner.h"

namespace tuner {

class Error : public std::runtime_error {
 public:
  Error(int status, const std::string& text) : std::runtime_error(text), status_(status) {}
  int status() const noexcept { return status_; }  // a tuner_status

 private:
  int status_;
};

inline void check(int status) {
  if (status != TUNER_OK) throw Error(status, tuner_last_error(nullptr));
}

using Dims = std::vector<std::pair<std::string, std::int64_t>>;
using Attributes = std::vector<std::pair<std::string, std::string>>;

struct Tensor {
  std::string name;
  std::uint64_t data = 0;
  std::int64_t row_stride = 0;
};

struct LaunchOptions {
  Dims dims;  // another size within the kernel's validity
  std::vector<std::pair<std::string, double>> reals;
  std::uint64_t workspace = 0;
  std::int64_t workspace_bytes = 0;
  bool pdl = true;
};

struct Workspace {
  std::int64_t bytes = 0, alignment = 1;
  bool zeroed = false;
};

namespace detail {
inline std::vector<tuner_dim> dims(const Dims& in) {
  std::vector<tuner_dim> out;
  out.reserve(in.size());
  for (const auto& [name, value] : in) out.push_back({name.c_str(), value});
  return out;
}
}  // namespace detail

class Kernel {
 public:
  Kernel() = default;
  explicit Kernel(tuner_kernel* owned) noexcept : handle_(owned) {}
  Kernel(Kernel&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Kernel& operator=(Kernel&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  ~Kernel() { tuner_kernel_release(handle_); }

  tuner_kernel* handle() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }

  tuner_kernel_facts info() const {
    tuner_kernel_facts facts{};
    facts.struct_size = sizeof facts;
    check(tuner_kernel_info(handle_, &facts));
    return facts;
  }
  Workspace workspace(const Dims& for_dims = {}) const {
    const auto list = detail::dims(for_dims);
    Workspace out;
    int zeroed = 0;
    check(tuner_kernel_workspace(handle_, list.data(), list.size(), &out.bytes, &out.alignment, &zeroed));
    out.zeroed = zeroed != 0;
    return out;
  }
  void load() const { check(tuner_kernel_load(handle_)); }

  void launch(void* stream, const std::vector<Tensor>& tensors, const LaunchOptions& options = {}) const {
    std::vector<tuner_tensor> tensor_list;
    tensor_list.reserve(tensors.size());
    for (const Tensor& tensor : tensors) tensor_list.push_back({tensor.name.c_str(), tensor.data, tensor.row_stride});
    const auto dim_list = detail::dims(options.dims);
    std::vector<tuner_real> real_list;
    real_list.reserve(options.reals.size());
    for (const auto& [name, value] : options.reals) real_list.push_back({name.c_str(), value});
    tuner_launch_args args = TUNER_LAUNCH_ARGS_INIT;
    args.tensors = tensor_list.data();
    args.tensor_count = tensor_list.size();
    args.dims = dim_list.data();
    args.dim_count = dim_list.size();
    args.reals = real_list.data();
    args.real_count = real_list.size();
    args.workspace = options.workspace;
    args.workspace_bytes = options.workspace_bytes;
    args.flags = options.pdl ? 0 : TUNER_NO_PDL;
    check(tuner_launch(handle_, stream, &args));
  }

 private:
  tuner_kernel* handle_ = nullptr;
};

class Client {
 public:
  // An empty path: the default socket.
  explicit Client(const std::string& socket_path = {}, const std::string& name = {}, std::int64_t deadline_ms = 0) {
    tuner_options options = TUNER_OPTIONS_INIT;
    options.socket_path = socket_path.empty() ? nullptr : socket_path.c_str();
    options.client_name = name.empty() ? nullptr : name.c_str();
    options.deadline_ms = deadline_ms;
    check(tuner_connect(&options, &handle_));
  }
  Client(Client&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Client& operator=(Client&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { tuner_close(handle_); }

  tuner_client* handle() const noexcept { return handle_; }
  bool connected() const noexcept { return tuner_connected(handle_) != 0; }

  Kernel get(const std::string& op, const Dims& dims, const Attributes& attributes = {}, tuner_wait wait = TUNER_NOW,
             std::int64_t deadline_ms = 0) const {
    const auto dim_list = detail::dims(dims);
    std::vector<tuner_attribute> attribute_list;
    attribute_list.reserve(attributes.size());
    for (const auto& [name, text] : attributes) attribute_list.push_back({name.c_str(), text.c_str()});
    tuner_kernel* kernel = nullptr;
    check(tuner_get(handle_, op.c_str(), dim_list.data(), dim_list.size(), attribute_list.data(), attribute_list.size(),
                    wait, deadline_ms, &kernel));
    return Kernel(kernel);
  }
  void subscribe(tuner_upgrade_fn callback = nullptr, void* user = nullptr) const {
    check(tuner_subscribe(handle_, callback, user));
  }

 private:
  tuner_client* handle_ = nullptr;
};

}  // namespace tuner
