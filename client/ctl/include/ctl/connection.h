// A connection to the daemon: greeted, blocking, with a deadline on every step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "ctl/command.h"
#include "model/json_reader.h"

namespace tunerd::ctl {

// A descriptor that closes itself.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

struct Reply {
  Json fields;  // without id and ok
  Descriptor descriptor;
};

inline constexpr int kDefaultDeadlineMs = 30'000;

class Connection {
 public:
  // Code::missing on field "socket" when nothing listens there.
  static Result<Connection> open(const Globals& globals);

  // One request and its reply; pushes that come between are dropped.
  Result<Reply> call(const std::string& type, Json fields, int deadline_ms = kDefaultDeadlineMs, int fd_to_pass = -1);

  // Several requests in flight: send() gives the id; next() the next reply of any, or nothing within wait_ms.
  Result<std::uint64_t> send(const std::string& type, Json fields, int fd_to_pass = -1);
  struct Numbered {
    std::uint64_t id = 0;
    Result<Reply> reply;
  };
  Result<std::optional<Numbered>> next(int wait_ms);

  const Json& hello() const { return hello_; }

 private:
  explicit Connection(Descriptor socket) : socket_(std::move(socket)) {}
  Descriptor socket_;
  Json hello_;
  std::uint64_t last_id_ = 0;
};

// The bytes behind a descriptor that came with a reply, at most `limit`.
Result<std::string> read_descriptor(const Descriptor& descriptor, std::int64_t limit);
// A sealed memfd with these bytes.
Result<Descriptor> sealed_memory(const std::string& name, std::string_view bytes);

}  // namespace tunerd::ctl
