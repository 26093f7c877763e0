#include "server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <csignal>

#include "log.h"

namespace tunerd::daemon {
namespace {

constexpr auto kDrain = std::chrono::seconds(10);
constexpr auto kAcceptPause = std::chrono::milliseconds(100);  // when descriptors or places have run out

}  // namespace

Server::Server(asio::io_context& loop, Config config)
    : core_(loop, std::move(config)),
      tuner_(core_),
      ladder_(core_, tuner_),
      acceptor_(loop),
      signals_(loop, SIGTERM, SIGINT) {
  tuner_.changed = [this](const OpEntry& entry, const Problem& problem) {
    spawn(core_.loop, "push", [this, &entry, problem]() { return push(entry, problem); });
  };
}

Task<Status> Server::start(int listener) {
  if (auto started = co_await core_.start(); !started) {
    ::close(listener);
    core_.stop();
    co_return started;
  }
  tuner_.start();
  acceptor_.assign(asio::local::stream_protocol(), listener);
  signals_.async_wait([this](const boost::system::error_code& error, int) {
    if (!error) request_stop();
  });
  spawn(core_.loop, "accept", [this]() { return accept(); });
  log_info("serving " + core_.context.device_class.key() + " (" + core_.product_name + "), " +
           core_.context.environment.key());
  co_return Status{};
}

Task<void> Server::accept() {
  const uid_t ours = ::geteuid();
  while (!stopping_) {
    if (sessions_.size() >= static_cast<std::size_t>(core_.config.max_clients)) {
      asio::steady_timer pause(core_.loop, kAcceptPause);
      co_await pause.async_wait(kTuple);
      continue;
    }
    auto [error, socket] = co_await acceptor_.async_accept(kTuple);
    if (stopping_) break;
    if (error) {
      // No descriptor left: whoever leaves makes room. Never a spin.
      ++core_.counters.refused_full;
      asio::steady_timer pause(core_.loop, kAcceptPause);
      co_await pause.async_wait(kTuple);
      continue;
    }
    ucred credentials{};
    socklen_t size = sizeof credentials;
    if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0 ||
        (credentials.uid != ours && credentials.uid != 0)) {
      ++core_.counters.refused_peers;
      log_warn("refused a connection of uid " + std::to_string(credentials.uid) + " pid " +
               std::to_string(credentials.pid));
      continue;
    }
    ++core_.counters.connections;
    auto session = std::make_shared<Session>(*this, std::move(socket), Peer{credentials.uid, credentials.pid, true});
    sessions_[session.get()] = session;
    session->start();
  }
}

Task<void> Server::push(const OpEntry& entry, Problem problem) {
  const std::string key = problem.key(entry.op);
  bool wanted = false;
  for (const auto& [pointer, session] : sessions_) wanted = wanted || session->subscribed_to(entry.op.name, key);
  if (!wanted) co_return;
  auto served = co_await ladder_.ready(entry, problem, false);
  if (!served) co_return;
  const Json body{{"id", 0}, {"type", "upgrade"}, {"answer", wire::to_json(served->answer)}};
  const auto sessions = sessions_;  // a send may drop its session
  for (const auto& [pointer, session] : sessions)
    if (session->subscribed_to(entry.op.name, key)) {
      session->send(body);
      ++core_.counters.pushes;
    }
}

void Server::forget(Session* session) { sessions_.erase(session); }

void Server::request_stop() {
  if (stopping_) return;
  stopping_ = true;
  spawn(core_.loop, "stop", [this]() { return stop(); });
}

Task<void> Server::stop() {
  log_info("stopping");
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  const auto until = Clock::now() + kDrain;
  const auto busy = [this] {
    for (const auto& [pointer, session] : sessions_)
      if (session->in_flight() > 0) return true;
    return false;
  };
  asio::steady_timer pause(core_.loop);
  // At least one turn, so that the reply to a stop request is written.
  do {
    pause.expires_after(std::chrono::milliseconds(50));
    co_await pause.async_wait(kTuple);
  } while (busy() && Clock::now() < until);
  core_.stop();
  const auto sessions = sessions_;
  for (const auto& [pointer, session] : sessions) session->close();
  core_.store.reset();
  core_.loop.stop();
}

}  // namespace tunerd::daemon
