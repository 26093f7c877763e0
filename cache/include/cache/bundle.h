// Bundles: winners with their samples, device class, environment and kernels, in one file that is checked whole before
// anything is used.
//
//   bundle := "TUNERBDL" version:u32le length:u64le sha256:32 bytes   then   body[length], one CBOR map
//   (docs/bundle.md)
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cache/store.h"

namespace tunerd::cache {

struct BundleWinner {
  Context context;
  Winner winner;
  std::vector<Sample> samples;
  Artifact artifact;  // cubin may be empty when the bundle was written without kernels
};

struct Bundle {
  std::string created_at, created_by;  // "tunerd 0.1.0"
  std::vector<BundleWinner> winners;
};

std::string encode_bundle(const Bundle& bundle);
// Errors (Code::corrupt) for a wrong magic, version, length, digest, or any field; nothing is partially returned.
Result<Bundle> decode_bundle(std::string_view bytes);
Result<Bundle> read_bundle(const std::filesystem::path& file);
Status write_bundle(const std::filesystem::path& file, const Bundle& bundle);  // aside, synced, renamed

Result<Bundle> export_bundle(Store& store, bool with_kernels = true);

struct ImportReport {
  std::int64_t imported = 0, kept = 0;  // kept: ours was at least as good
  std::vector<std::string> skipped;     // why
};
// One transaction: all or nothing. `only` restricts to one device class: a bundle with none of it is an error naming
// both.
Result<ImportReport> import_bundle(Store& store, const Bundle& bundle, const std::string& only_device_class_key = {});

}  // namespace tunerd::cache
