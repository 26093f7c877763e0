// The tables, and how an older file becomes a newer one. user_version counts the migrations applied.
#pragma once

#include <span>

#include "database.h"

namespace tunerd::cache {

inline constexpr std::int64_t kApplicationId = 0x544e5244;  // "TNRD", in SQLite's file header

std::span<const char* const> migrations();

// Brings a writable database to the newest schema, each step in its own transaction. Errors: a file of another program;
// a newer schema (names both versions).
Status migrate(Database& database, std::span<const char* const> steps);
// A database that may not be written must have exactly the newest schema.
Status require_schema(Database& database, std::span<const char* const> steps);

}  // namespace tunerd::cache
