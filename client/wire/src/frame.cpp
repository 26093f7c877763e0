#include "wire/frame.h"

#include <cctype>

#include "cbor_scan.h"

namespace tunerd::wire {
namespace {

constexpr std::string_view kMagic = "TNRD";

template <class T>
void put(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

template <class T>
T take(std::string_view bytes) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value = static_cast<T>(value | static_cast<T>(static_cast<T>(static_cast<std::uint8_t>(bytes[i])) << (8 * i)));
  return value;
}

std::string printable(std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<std::uint8_t>(c);
    if (byte < 0x80 && std::isprint(byte) != 0) {
      text += c;
    } else {
      text += std::string("\\x") + digits[byte >> 4] + digits[byte & 15];
    }
  }
  return text;
}

}  // namespace

Result<Header> parse_header(std::string_view bytes, std::uint32_t max_body_bytes) {
  if (bytes.size() < kHeaderBytes)
    return Unexpected(Error{Code::corrupt,
                            "a frame header is cut short",
                            "length",
                            std::to_string(bytes.size()) + " bytes",
                            std::to_string(kHeaderBytes) + " bytes",
                            {}});
  if (bytes.substr(0, 4) != kMagic)
    return Unexpected(Error{Code::corrupt,
                            "these bytes are not a tunerd frame",
                            "magic",
                            printable(bytes.substr(0, 4)),
                            std::string(kMagic),
                            {}});
  const Header header{take<std::uint16_t>(bytes.substr(4)), take<std::uint16_t>(bytes.substr(6)),
                      take<std::uint32_t>(bytes.substr(8))};
  if (header.length > max_body_bytes)
    return Unexpected(Error{Code::corrupt,
                            "a frame is longer than this side reads",
                            "length",
                            std::to_string(header.length),
                            "at most " + std::to_string(max_body_bytes) + " bytes",
                            {}});
  return header;
}

Result<Json> parse_body(std::string_view body) {
  TRY(scan_cbor(body));
  Json json = Json::from_cbor(body.begin(), body.end(), /*strict=*/true, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object())
    return Unexpected(Error{Code::corrupt,
                            "a frame's body could not be decoded",
                            "body",
                            std::to_string(body.size()) + " bytes",
                            "one CBOR map",
                            {}});
  return json;
}

std::string encode_frame(const Json& body, std::uint16_t flags) {
  std::string out;
  out.reserve(512);
  out += kMagic;
  put(out, kProtocolVersion);
  put(out, flags);
  put(out, std::uint32_t{0});
  Json::to_cbor(body, out);
  const auto length = static_cast<std::uint32_t>(out.size() - kHeaderBytes);
  for (std::size_t i = 0; i < 4; ++i) out[8 + i] = static_cast<char>(length >> (8 * i) & 0xFF);
  return out;
}

}  // namespace tunerd::wire
