// tuner_client: the connection, the kernels held, and the upgrades of them.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "connection.h"
#include "kernel.h"

struct tuner_client {
 public:
  static tunerd::Result<std::unique_ptr<tuner_client>> open(const tuner_options& options);
  ~tuner_client();

  tunerd::Result<tunerd::client::KernelRef> get(const tunerd::client::ProblemView& problem, tunerd::wire::Wait wait,
                                                std::int64_t deadline_ms);
  tunerd::Status subscribe(tuner_upgrade_fn callback, void* user);
  bool connected() const { return connection_->connected(); }
  bool on_own_thread() const { return connection_->on_own_thread(); }

 private:
  struct Callback {
    tuner_upgrade_fn function = nullptr;
    void* user = nullptr;
  };

  tuner_client() = default;
  tunerd::client::KernelRef held(const tunerd::client::ProblemView& problem) const;
  tunerd::Result<std::unique_ptr<tunerd::client::KernelState>> state_from(const tunerd::client::ProblemKey& key,
                                                                          tunerd::client::Reply reply);
  tunerd::Result<tunerd::client::KernelRef> keep(tunerd::client::ProblemKey key,
                                                 std::unique_ptr<tunerd::client::KernelState> state);

  // Upgrades, on the connection's thread: a push names a problem, its kernel is asked for again, one at a time.
  void on_push(const tunerd::Json& message);
  void on_reconnected();
  void refresh_all();
  void refresh_next();
  void on_refreshed(tunerd::client::KernelRef kernel, tunerd::Result<tunerd::client::Reply> reply);

  std::size_t max_kernels_ = 4096;
  tunerd::client::ImageTable images_;
  mutable std::shared_mutex kernels_mutex_;
  std::unordered_map<tunerd::client::ProblemKey, tunerd::client::KernelRef, tunerd::client::ProblemHash,
                     tunerd::client::ProblemEqual>
      kernels_;

  std::mutex upgrade_mutex_;
  std::atomic<bool> subscribed_{false};
  Callback callback_;
  std::deque<tunerd::client::KernelRef> to_refresh_;
  bool refreshing_ = false;

  // Last: its thread calls into everything above until it is joined.
  std::unique_ptr<tunerd::client::Connection> connection_;
};
