// SQLite behind one small class: prepared statements only, every failure an Error that names the file.
//
// An owner's connection is exclusive: it takes SQLite's lock at the first access and keeps it, so no second connection
// can exist beside it (write-ahead logging has a corruption bug that needs two, and no shared-memory file is made).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "model/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tunerd::cache {

inline constexpr int kBusyTimeoutMs = 2000;

class Database;

// One execution of a prepared statement. Parameters are bound in order; columns are read in order of the SELECT.
class Statement {
 public:
  Statement(Database& database, sqlite3_stmt* handle, bool owned);
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  // Bound bytes must live until the statement is done. A failed bind shows up in row() or run().
  Statement& text(std::string_view value);
  Statement& blob(std::string_view value);
  Statement& integer(std::int64_t value);
  Statement& real(double value);

  Result<bool> row();  // true: a row is there to read; false: no more
  Status run();        // to the end, ignoring rows

  std::string text_at(int column) const;
  std::string_view view_at(int column) const;  // until the next row()
  std::int64_t integer_at(int column) const;
  double real_at(int column) const;

 private:
  Database* database_;
  sqlite3_stmt* handle_;
  bool owned_;
  int bound_ = 0;
  int bind_error_ = 0;
};

class Database {
 public:
  enum class Mode { owner, immutable };
  // owner: created when absent. immutable: the file is promised not to change; nothing is locked, nothing written.
  static Result<std::unique_ptr<Database>> open(const std::filesystem::path& file, Mode mode);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // `sql` is a string literal; statements are kept by its address. A statement in use is prepared a second time.
  Result<Statement> prepare(const char* sql);
  Status run(const char* sql);                      // no parameters, one statement
  Status run_script(const char* sql);               // several statements: migrations
  Result<std::int64_t> integer(const char* sql);    // first column of the first row
  Result<std::string> first_text(const char* sql);  // same, as text
  std::int64_t last_insert_id() const;
  std::int64_t changes() const;

  Error error(int code, std::string_view doing) const;
  const std::filesystem::path& file() const { return file_; }

 private:
  friend class Statement;
  Database(sqlite3* handle, std::filesystem::path file) : handle_(handle), file_(std::move(file)) {}
  sqlite3* handle_;
  std::filesystem::path file_;
  std::unordered_map<const char*, sqlite3_stmt*> kept_;
};

// BEGIN IMMEDIATE … COMMIT; rolled back when it goes out of scope uncommitted.
class Transaction {
 public:
  static Result<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Status commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace tunerd::cache
