// Frames on every tunerd socket: daemon and clients, daemon and workers. Byte grammar, all integers little-endian:
//
//   frame  := magic version flags length body
//   magic  := "TNRD"                     4 bytes
//   version:= u16                        protocol version of the sender, kProtocolVersion
//   flags  := u16                        bit 0: exactly one file descriptor (SCM_RIGHTS) comes with the header's first
//   byte length := u32                        bytes of body, at most the receiver's limit body   := one CBOR map (RFC
//   8949), definite or indefinite lengths, nesting at most kMaxDepth
//
// A receiver that meets a wrong magic, an over-long length, too deep nesting or a body that is not one map answers with
// an error (when it can) and closes. Nothing is allocated from `length` before it passed the limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/json_reader.h"
#include "model/result.h"

namespace tunerd::wire {

inline constexpr std::uint16_t kProtocolVersion = 1;
inline constexpr std::uint16_t kProtocolOldest = 1;  // oldest still spoken
inline constexpr std::size_t kHeaderBytes = 12;
inline constexpr std::uint32_t kMaxRequestBytes = 1u << 20;  // client to daemon
inline constexpr std::uint32_t kMaxReplyBytes = 64u << 20;   // daemon to client, and worker sockets
inline constexpr int kMaxDepth = 32;
inline constexpr std::uint16_t kFlagFd = 1;

struct Header {
  std::uint16_t version = kProtocolVersion;
  std::uint16_t flags = 0;
  std::uint32_t length = 0;
};

// `bytes` holds kHeaderBytes. Errors (Code::corrupt) name magic or length, with the value and the limit. Does not judge
// version.
Result<Header> parse_header(std::string_view bytes, std::uint32_t max_body_bytes);
// Checks depth without recursion first, then decodes; the result is an object. Trailing bytes are an error.
Result<Json> parse_body(std::string_view body);
// Where the unsigned integer that is the body's "id" stands, and its value.
struct IdSpan {
  std::size_t at = 0, size = 0;
  std::uint64_t id = 0;
};
// Empty when the body is not one map of definite lengths with exactly one such id; it may still be a valid body.
std::optional<IdSpan> find_id(std::string_view body);

// Header and body in one string, ready to write.
std::string encode_frame(const Json& body, std::uint16_t flags = 0);

// Blocking helpers over a connected socket, for clients and workers. `deadline_ms` < 0 waits for ever; Code::deadline
// on time-out, Code::io "closed by peer" at a clean end. A received descriptor is handed out in *fd (or closed when fd
// is null); *fd = -1 when none.
Status send_frame(int socket, const Json& body, int fd_to_pass = -1, int deadline_ms = -1);
Result<Json> receive_frame(int socket, std::uint32_t max_body_bytes, int* fd, int deadline_ms = -1);

}  // namespace tunerd::wire
