// One client connection: a reader, a writer with a bounded queue, and a coroutine for each request in flight.
#pragma once

#include <deque>
#include <set>

#include "core.h"
#include "ladder.h"

namespace tunerd::daemon {

class Server;

struct Peer {
  uid_t uid = 0;
  pid_t pid = 0;
  bool privileged = false;  // the daemon's own user, or root
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Server& server, Socket socket, Peer peer);

  void start();
  void close();
  // Sends a frame, at once when the client takes it, else from a queue; drops the client when what it has not read
  // passes the cap.
  void send(const Json& body, std::shared_ptr<const SealedFile> file = nullptr);

  const Peer& peer() const { return peer_; }
  const std::string& name() const { return name_; }
  bool subscribed_to(const std::string& op, const std::string& problem_key) const;
  void subscribe(std::optional<std::string> op);
  void asked_for(const std::string& problem_key);
  void greeted(std::string name) { name_ = std::move(name), greeted_ = true; }
  std::size_t in_flight() const { return in_flight_; }

 private:
  Task<void> read();
  Task<void> write();
  Task<void> handle(Json body, int fd, std::string raw);
  bool answer_again(std::string_view body);  // whether the answer was ready
  void remember(std::string_view body, const Json& reply, std::shared_ptr<const SealedFile> file, std::string problem);
  void send_bytes(std::string bytes, std::shared_ptr<const SealedFile> file);

  Server& server_;
  Socket socket_;
  Peer peer_;
  std::string name_;
  bool greeted_ = false, closed_ = false;
  struct Frame {
    std::string bytes;
    std::shared_ptr<const SealedFile> file;
  };
  std::deque<Frame> queue_;
  std::size_t queued_bytes_ = 0, in_flight_ = 0;
  bool writing_ = false;  // a frame is under way outside of the queue
  Signal work_;
  bool subscribed_ = false;
  std::set<std::string> ops_, problems_;
};

}  // namespace tunerd::daemon
