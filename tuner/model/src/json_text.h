// A JSON value of any origin as an error shows it.
#pragma once

#include <string>

#include "model/json_reader.h"

namespace tunerd {

// Strings in quotes; never throws, at most 80 bytes.
inline std::string shown(const Json& value) {
  return legible(value.dump(-1, ' ', false, Json::error_handler_t::replace), 80);
}

// 64-bit signed: a larger unsigned number is none.
inline bool is_int64(const Json& value) {
  return value.is_number_integer() && (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT64_MAX);
}

}  // namespace tunerd
