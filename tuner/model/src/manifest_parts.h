// The parts of a manifest that have a file of their own; parse_manifest puts them together.
#pragma once

#include "manifest_scope.h"
#include "model/json_reader.h"
#include "model/manifest.h"

namespace tunerd {

// Each reads its key of `reader`, if there, into `manifest`.
Status parse_support(JsonReader& reader, const OpSpec& op, Manifest& manifest);      // arch, dtypes, attributes
Status parse_params(JsonReader& reader, ManifestScope& scope, Manifest& manifest);   // params
Status parse_derived(JsonReader& reader, ManifestScope& scope, Manifest& manifest);  // derived, ordered by dependency
Status parse_arguments(JsonReader& reader, const OpSpec& op, const ManifestScope& scope, Manifest& manifest);
Status parse_launch(JsonReader& reader, const ManifestScope& scope, Manifest& manifest);
Status parse_cost(JsonReader& reader, const ManifestScope& scope, Manifest& manifest);

// The values of `object` that are not comments.
std::vector<std::pair<std::string, const Json*>> members(const Json& object);
// A power of two up to 64 KiB.
Status check_alignment(std::int64_t align_bytes, const std::string& path);

}  // namespace tunerd
