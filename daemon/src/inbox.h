// What a client sends, as whole frames: one wait and one read serve all the frames that have come meanwhile.
#pragma once

#include <string>
#include <string_view>

#include "async.h"
#include "wire/frame.h"

namespace tunerd::daemon {

class Inbox {
 public:
  struct Frame {
    wire::Header header;
    std::string_view body;  // until the next call
    int fd = -1;            // the reader's to close
  };

  explicit Inbox(Socket& socket) : socket_(socket) {}
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;
  ~Inbox();

  // The next frame. Code::deadline when no byte of it came before `first_byte`, or not all of it within `rest` of its
  // first; Code::io "closed by peer" at a clean end; as wire::parse_header.
  Task<Result<Frame>> next(Clock::time_point first_byte, Clock::duration rest);

 private:
  Result<bool> take(Frame& frame);  // whether a whole one is there
  Status read_some();

  Socket& socket_;
  std::string bytes_;
  std::size_t begin_ = 0;  // of what is not consumed
  int fd_ = -1;
  Clock::time_point started_{};  // when the first byte of the frame in hand came
};

}  // namespace tunerd::daemon
