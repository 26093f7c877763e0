#include "model/json_reader.h"

#include <algorithm>
#include <cmath>

#include "json_text.h"

namespace tunerd {
JsonReader::JsonReader(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
  if (!object.is_object()) not_an_object_ = bad_input(path_, shown(object), "an object").value();
}

bool JsonReader::has(const std::string& key) { return any(key) != nullptr; }

const Json* JsonReader::any(const std::string& key) {
  asked_.push_back(key);
  if (not_an_object_) return nullptr;
  const auto found = object_.find(key);
  return found == object_.end() ? nullptr : &*found;
}

Result<const Json*> JsonReader::get(const std::string& key, const char* expected) {
  if (not_an_object_) return Unexpected(*not_an_object_);
  const Json* value = any(key);
  if (value == nullptr) {
    auto error = bad_input(path_ + "." + key, "", expected);
    error.value().message = "Missing " + path_ + "." + key;
    // A typo of a required key shows up here first, before finish() could name it.
    std::string given;
    for (const auto& [name, unused] : object_.items())
      if (name != "//" && std::find(asked_.begin(), asked_.end(), name) == asked_.end())
        given += (given.empty() ? "" : ", ") + name;
    if (!given.empty()) error.value().message += ", given are " + legible(given, 200);
    return error;
  }
  return value;
}

Result<std::string> JsonReader::string(const std::string& key) {
  TRY_ASSIGN(const Json* value, get(key, "a string"));
  if (!value->is_string()) return bad_input(path_ + "." + key, shown(*value), "a string");
  return value->get<std::string>();
}

Result<std::string> JsonReader::string_or(const std::string& key, std::string fallback) {
  if (!has(key)) return fallback;
  return string(key);
}

Result<std::int64_t> JsonReader::integer(const std::string& key) {
  TRY_ASSIGN(const Json* value, get(key, "an integer"));
  if (!is_int64(*value)) return bad_input(path_ + "." + key, shown(*value), "an integer");
  return value->get<std::int64_t>();
}

Result<std::int64_t> JsonReader::integer_or(const std::string& key, std::int64_t fallback) {
  if (!has(key)) return fallback;
  return integer(key);
}

Result<double> JsonReader::number(const std::string& key) {
  TRY_ASSIGN(const Json* value, get(key, "a number"));
  if (!value->is_number()) return bad_input(path_ + "." + key, shown(*value), "a number");
  // CBOR can carry what JSON text cannot.
  if (!std::isfinite(value->get<double>())) return bad_input(path_ + "." + key, "infinity or NaN", "a finite number");
  return value->get<double>();
}

Result<double> JsonReader::number_or(const std::string& key, double fallback) {
  if (!has(key)) return fallback;
  return number(key);
}

Result<bool> JsonReader::boolean_or(const std::string& key, bool fallback) {
  const Json* value = any(key);
  if (not_an_object_) return Unexpected(*not_an_object_);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) return bad_input(path_ + "." + key, shown(*value), "true or false");
  return value->get<bool>();
}

Result<std::vector<std::string>> JsonReader::strings_or(const std::string& key, std::vector<std::string> fallback) {
  if (!has(key)) return fallback;
  TRY_ASSIGN(const Json* value, array(key));
  std::vector<std::string> out;
  for (std::size_t i = 0; i < value->size(); ++i) {
    if (!(*value)[i].is_string())
      return bad_input(path_ + "." + key + "[" + std::to_string(i) + "]", shown((*value)[i]), "a string");
    out.push_back((*value)[i].get<std::string>());
  }
  return out;
}

Result<const Json*> JsonReader::object(const std::string& key) {
  TRY_ASSIGN(const Json* value, get(key, "an object"));
  if (!value->is_object()) return bad_input(path_ + "." + key, shown(*value), "an object");
  return value;
}

Result<const Json*> JsonReader::array(const std::string& key) {
  TRY_ASSIGN(const Json* value, get(key, "a list"));
  if (!value->is_array()) return bad_input(path_ + "." + key, shown(*value), "a list");
  return value;
}

Status JsonReader::finish() const {
  if (not_an_object_) return Unexpected(*not_an_object_);
  for (const auto& [key, value] : object_.items()) {
    if (key == "//" || std::find(asked_.begin(), asked_.end(), key) != asked_.end()) continue;
    auto known = asked_;
    std::sort(known.begin(), known.end());
    known.erase(std::unique(known.begin(), known.end()), known.end());
    auto error = unknown_name(path_ + "." + key, key, known);
    error.value().message = "Unknown field " + legible(path_ + "." + key);
    return error;
  }
  return {};
}

}  // namespace tunerd
