// The CBOR body of a bundle, field by field. The envelope (magic, version, length, digest) is bundle.cpp's.
#pragma once

#include "cache/bundle.h"

namespace tunerd::cache {

inline constexpr std::string_view kBundleMagic = "TUNERBDL";
inline constexpr std::uint32_t kBundleVersion = 1;
inline constexpr std::size_t kBundleHeaderBytes = 8 + 4 + 8 + 32;
inline constexpr std::int64_t kMaxBundleBytes = std::int64_t{2} << 30;
inline constexpr int kMaxBundleDepth = 48;

Json bundle_to_json(const Bundle& bundle);
// Checks every field's type and what fields say of each other: digests, keys, architecture, op.
Result<Bundle> bundle_from_json(const Json& body);

}  // namespace tunerd::cache
