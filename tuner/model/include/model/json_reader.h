// Strict reading of JSON objects: every key must be known, every type right; errors carry the path of the field.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "model/result.h"

namespace tunerd {

using Json = nlohmann::json;

// Reads one JSON object field by field. finish() fails with a suggestion when a key was never asked for.
// Getters return an error naming "<path>.<key>". The Json must outlive the reader.
class JsonReader {
 public:
  JsonReader(const Json& object, std::string path);

  bool has(const std::string& key);
  Result<std::string> string(const std::string& key);
  Result<std::string> string_or(const std::string& key, std::string fallback);
  Result<std::int64_t> integer(const std::string& key);
  Result<std::int64_t> integer_or(const std::string& key, std::int64_t fallback);
  Result<double> number(const std::string& key);
  Result<double> number_or(const std::string& key, double fallback);
  Result<bool> boolean_or(const std::string& key, bool fallback);
  Result<std::vector<std::string>> strings_or(const std::string& key, std::vector<std::string> fallback);
  Result<const Json*> object(const std::string& key);  // must be an object
  Result<const Json*> array(const std::string& key);   // must be an array
  const Json* any(const std::string& key);             // nullptr when absent
  const std::string& path() const { return path_; }
  Status finish() const;

 private:
  Result<const Json*> get(const std::string& key, const char* expected);
  const Json& object_;
  std::string path_;
  std::vector<std::string> asked_;
  std::optional<Error> not_an_object_;
};

// Parses a JSON file. Errors name the file and, for bad syntax, the byte offset. At most `limit_bytes` are read.
Result<Json> read_json_file(const std::filesystem::path& file, std::int64_t limit_bytes = 64 << 20);
Result<std::string> read_text_file(const std::filesystem::path& file, std::int64_t limit_bytes = 64 << 20);
// Writes aside (same directory), syncs the file, renames over `file`, syncs the directory.
Status write_file_atomically(const std::filesystem::path& file, std::string_view bytes);

}  // namespace tunerd
