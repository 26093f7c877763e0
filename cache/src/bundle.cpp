#include "cache/bundle.h"

#include "bundle_format.h"
#include "cbor_check.h"
#include "model/digest.h"
#include "store_impl.h"

namespace tunerd::cache {
namespace {

void append_little_endian(std::string& out, std::uint64_t value, int width) {
  for (int i = 0; i < width; ++i) out += static_cast<char>(value >> (8 * i) & 0xffu);
}

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i > 0; --i) value = value << 8u | static_cast<unsigned char>(bytes[i - 1]);
  return value;
}

std::string digest_bytes(std::string_view body) {
  const std::string hex = sha256_hex(body);
  std::string raw;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    raw += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return raw;
}

Unexpected rejected(std::string field, std::string value, std::string expected) {
  Error error{
      Code::corrupt, "The bundle is rejected whole.", std::move(field), std::move(value), std::move(expected), {}};
  return Unexpected(std::move(error));
}

}  // namespace

std::string encode_bundle(const Bundle& bundle) {
  const std::vector<std::uint8_t> body = Json::to_cbor(bundle_to_json(bundle));
  const std::string_view bytes(reinterpret_cast<const char*>(body.data()), body.size());
  std::string out(kBundleMagic);
  append_little_endian(out, kBundleVersion, 4);
  append_little_endian(out, body.size(), 8);
  out += digest_bytes(bytes);
  out += bytes;
  return out;
}

Result<Bundle> decode_bundle(std::string_view bytes) {
  if (bytes.size() < kBundleHeaderBytes) {
    return rejected("size", std::to_string(bytes.size()) + " bytes",
                    "at least " + std::to_string(kBundleHeaderBytes) + " bytes");
  }
  if (bytes.substr(0, 8) != kBundleMagic) return rejected("magic", "other bytes", std::string(kBundleMagic));
  if (const std::uint64_t version = little_endian(bytes.substr(8, 4)); version != kBundleVersion) {
    return rejected("version", std::to_string(version), std::to_string(kBundleVersion));
  }
  const std::string_view body = bytes.substr(kBundleHeaderBytes);
  if (const std::uint64_t length = little_endian(bytes.substr(12, 8)); length != body.size()) {
    return rejected("length", std::to_string(length), std::to_string(body.size()) + ", the bytes that follow");
  }
  if (digest_bytes(body) != bytes.substr(20, 32)) return rejected("digest", "another", "the SHA-256 of the body");
  TRY(check_cbor(body, kMaxBundleDepth));
  Json json;
  try {
    // The input-iterator overload copies nothing; some length errors are thrown in spite of allow_exceptions = false.
    json = Json::from_cbor(body.begin(), body.end(), true, false);
  } catch (const std::exception& error) {
    return rejected("body", error.what(), "CBOR");
  }
  if (!json.is_object()) return rejected("body", "no map", "one CBOR map");
  auto bundle = bundle_from_json(json);
  if (!bundle) {
    // Whatever is wrong inside, for the caller it is one thing: these bytes are no bundle.
    bundle.error().code = Code::corrupt;
    bundle.error().message = "The bundle is rejected whole: " + bundle.error().message;
  }
  return bundle;
}

Result<Bundle> read_bundle(const std::filesystem::path& file) {
  TRY_ASSIGN(const std::string bytes, read_text_file(file, kMaxBundleBytes));
  return decode_bundle(bytes);
}

Status write_bundle(const std::filesystem::path& file, const Bundle& bundle) {
  return write_file_atomically(file, encode_bundle(bundle));
}

Result<Bundle> export_bundle(Store& store, bool with_kernels) {
  Bundle bundle;
  bundle.created_at = utc_now();
  bundle.created_by = "tunerd 0.1.0";
  TRY_ASSIGN(std::vector<WinnerRow> rows, BundleAccess::parts(store).winner_rows({}));
  for (WinnerRow& row : rows) {
    BundleWinner entry;
    TRY_ASSIGN(entry.samples, store.samples(row.context, row.winner.problem_key));
    std::optional<Artifact> artifact;
    if (with_kernels) {
      TRY_ASSIGN(artifact, store.get_artifact(row.winner.kernel_key));
    }
    // A kernel rebuilt under the same key with other bytes is not the one that was measured.
    if (artifact && artifact->digest == row.winner.kernel_digest) {
      entry.artifact = std::move(*artifact);
    } else {
      entry.artifact.kernel_key = row.winner.kernel_key;
      entry.artifact.digest = row.winner.kernel_digest;
      entry.artifact.arch = row.context.device_class.arch;
      entry.artifact.nvrtc = row.context.environment.nvrtc;
      entry.artifact.variant = row.winner.variant;
    }
    entry.context = std::move(row.context);
    entry.winner = std::move(row.winner);
    bundle.winners.push_back(std::move(entry));
  }
  return bundle;
}

}  // namespace tunerd::cache
