// Accepting clients, pushing upgrades, and the orderly end.
#pragma once

#include <boost/asio/signal_set.hpp>
#include <map>

#include "core.h"
#include "ladder.h"
#include "session.h"
#include "tuner.h"

namespace tunerd::daemon {

class Server {
 public:
  Server(asio::io_context& loop, Config config);

  // Starts the parts, then listens on `listener` (taken over). The loop ends when the server has stopped.
  Task<Status> start(int listener);
  void request_stop();
  void forget(Session* session);

  Core& core() { return core_; }
  Tuner& tuner() { return tuner_; }
  Ladder& ladder() { return ladder_; }
  std::size_t sessions() const { return sessions_.size(); }

 private:
  Task<void> accept();
  Task<void> push(const OpEntry& entry, Problem problem);
  Task<void> stop();

  Core core_;
  Tuner tuner_;
  Ladder ladder_;
  asio::local::stream_protocol::acceptor acceptor_;
  asio::signal_set signals_;
  std::map<Session*, std::shared_ptr<Session>> sessions_;
  bool stopping_ = false;
};

}  // namespace tunerd::daemon
