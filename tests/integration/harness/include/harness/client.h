// A client that does one thing at a time, or deliberately the wrong thing. Errors are Results as the daemon sent them.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "model/json_reader.h"
#include "wire/frame.h"

namespace tunerd::test {

inline constexpr int kPatienceMs = 90'000;  // CI machines are slow; a test that needs it all has failed

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  std::string bytes() const;  // all of the file

 private:
  int fd_;
};

struct Reply {
  Json fields;
  Descriptor file;  // what came with it, if anything did
};

class Client {
 public:
  // Connected, nothing said yet.
  static Result<Client> connect(const std::filesystem::path& socket);
  // And greeted.
  static Result<Client> greet(const std::filesystem::path& socket);

  int socket() const { return socket_.get(); }
  const Json& hello() const { return hello_; }

  Status send(std::uint64_t id, const std::string& type, Json fields, int fd_to_pass = -1);
  Status send_bytes(std::string_view bytes);
  // The next frame, whatever it is. Code::io "closed…" when the daemon closed.
  Result<Reply> receive(int deadline_ms = kPatienceMs);
  // Sends and waits for the reply of that request; pushes met on the way are kept for push().
  Result<Reply> call(const std::string& type, Json fields = Json::object(), int fd_to_pass = -1,
                     int deadline_ms = kPatienceMs);
  // The next push, waiting for it; none in time: empty.
  std::optional<Json> push(int deadline_ms);

 private:
  Descriptor socket_;
  Json hello_;
  std::uint64_t last_id_ = 0;
  std::deque<Json> pushes_;
};

// The body of a get.
Json get_fields(const std::string& op, Json problem, const std::string& wait = "now");

}  // namespace tunerd::test
