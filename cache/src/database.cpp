#include "database.h"

#include <sqlite3.h>

#include <cstring>

namespace tunerd::cache {
namespace {

// SQLite's URI form; only these characters would end or escape the path.
std::string file_uri(const std::filesystem::path& file, const char* query) {
  std::string uri = "file:";
  for (const char c : file.string()) {
    if (c == '?') {
      uri += "%3f";
    } else if (c == '#') {
      uri += "%23";
    } else if (c == '%') {
      uri += "%25";
    } else {
      uri += c;
    }
  }
  return uri + query;
}

Code code_of(int primary) {
  switch (primary) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Code::busy;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Code::corrupt;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return Code::denied;
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_NOMEM:
      return Code::io;
    default:
      return Code::internal;
  }
}

}  // namespace

Result<std::unique_ptr<Database>> Database::open(const std::filesystem::path& file, Mode mode) {
  // A link among the parents is the operator's choice, which NOFOLLOW would refuse; the file itself must not be one.
  std::error_code unresolved;
  std::filesystem::path absolute =
      std::filesystem::canonical(std::filesystem::absolute(file).parent_path(), unresolved);
  if (unresolved) {
    return fail(Code::missing, "Cannot open the folder of " + file.string() + ": " + unresolved.message() + ".");
  }
  absolute /= file.filename();
  const bool owner = mode == Mode::owner;
  const std::string uri = file_uri(absolute, owner ? "" : "?immutable=1");
  const int flags = SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW |
                    (owner ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY);
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(uri.c_str(), &handle, flags, nullptr);
  std::unique_ptr<Database> database(new Database(handle, absolute));
  if (code != SQLITE_OK) return Unexpected(database->error(code, "open"));
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, kBusyTimeoutMs);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  // A planted schema must not be able to call functions or hide a trigger's effects.
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_FKEY, 1, nullptr);
  sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0);
  TRY(database->run("PRAGMA cell_size_check = ON"));
  if (owner) TRY(database->run("PRAGMA locking_mode = EXCLUSIVE"));
  return database;
}

Database::~Database() {
  for (auto& [sql, statement] : kept_) sqlite3_finalize(statement);
  sqlite3_close_v2(handle_);  // the last connection checkpoints the log and removes it
}

Error Database::error(int code, std::string_view doing) const {
  const int primary = code & 0xff;
  const char* detail = handle_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(handle_);
  std::string text = "The cache database " + file_.string() + " could not " + std::string(doing) + ": " + detail;
  if (handle_ != nullptr && (primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN || primary == SQLITE_FULL)) {
    if (const int system = sqlite3_system_errno(handle_); system != 0)
      text += " (" + std::string(strerror(system)) + ")";
  }
  if (primary == SQLITE_BUSY || primary == SQLITE_LOCKED) {
    text += "; another process holds its lock and did not let go within " + std::to_string(kBusyTimeoutMs) + " ms";
  }
  return Error{code_of(primary), text + ".", {}, {}, {}, {}};
}

Result<Statement> Database::prepare(const char* sql) {
  if (const auto found = kept_.find(sql); found != kept_.end() && sqlite3_stmt_busy(found->second) == 0) {
    return Statement(*this, found->second, false);
  }
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(handle_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return Unexpected(error(code, "prepare a statement"));
  const bool kept = kept_.emplace(sql, statement).second;
  return Statement(*this, statement, !kept);
}

Status Database::run(const char* sql) {
  TRY_ASSIGN(Statement statement, prepare(sql));
  return statement.run();
}

Status Database::run_script(const char* sql) {
  const char* rest = sql;
  while (*rest != '\0') {
    sqlite3_stmt* handle = nullptr;
    const int code = sqlite3_prepare_v2(handle_, rest, -1, &handle, &rest);
    if (code != SQLITE_OK) return Unexpected(error(code, "run its schema"));
    if (handle == nullptr) break;  // white space at the end
    Statement statement(*this, handle, true);
    TRY(statement.run());
  }
  return {};
}

Result<std::int64_t> Database::integer(const char* sql) {
  TRY_ASSIGN(Statement statement, prepare(sql));
  TRY_ASSIGN(const bool there, statement.row());
  return there ? statement.integer_at(0) : 0;
}

Result<std::string> Database::first_text(const char* sql) {
  TRY_ASSIGN(Statement statement, prepare(sql));
  TRY_ASSIGN(const bool there, statement.row());
  return there ? statement.text_at(0) : std::string{};
}

std::int64_t Database::last_insert_id() const { return sqlite3_last_insert_rowid(handle_); }
std::int64_t Database::changes() const { return sqlite3_changes64(handle_); }

Statement::Statement(Database& database, sqlite3_stmt* handle, bool owned)
    : database_(&database), handle_(handle), owned_(owned) {}

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_),
      handle_(std::exchange(other.handle_, nullptr)),
      owned_(other.owned_),
      bound_(other.bound_),
      bind_error_(other.bind_error_) {}

Statement::~Statement() {
  if (handle_ == nullptr) return;
  if (owned_) {
    sqlite3_finalize(handle_);
  } else {
    sqlite3_reset(handle_);
    sqlite3_clear_bindings(handle_);
  }
}

Statement& Statement::text(std::string_view value) {
  const int code = sqlite3_bind_text64(handle_, ++bound_, value.data() == nullptr ? "" : value.data(), value.size(),
                                       SQLITE_STATIC, SQLITE_UTF8);
  if (code != SQLITE_OK) bind_error_ = code;
  return *this;
}

Statement& Statement::blob(std::string_view value) {
  const int code =
      sqlite3_bind_blob64(handle_, ++bound_, value.data() == nullptr ? "" : value.data(), value.size(), SQLITE_STATIC);
  if (code != SQLITE_OK) bind_error_ = code;
  return *this;
}

Statement& Statement::integer(std::int64_t value) {
  if (const int code = sqlite3_bind_int64(handle_, ++bound_, value); code != SQLITE_OK) bind_error_ = code;
  return *this;
}

Statement& Statement::real(double value) {
  if (const int code = sqlite3_bind_double(handle_, ++bound_, value); code != SQLITE_OK) bind_error_ = code;
  return *this;
}

Result<bool> Statement::row() {
  if (bind_error_ != 0) return Unexpected(database_->error(bind_error_, "bind a value"));
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return Unexpected(database_->error(code, sqlite3_stmt_readonly(handle_) != 0 ? "read" : "write"));
}

Status Statement::run() {
  while (true) {
    TRY_ASSIGN(const bool more, row());
    if (!more) return {};
  }
}

std::string_view Statement::view_at(int column) const {
  // The bytes first: asking for the size of a blob must not convert it.
  const void* bytes = sqlite3_column_blob(handle_, column);
  const int size = sqlite3_column_bytes(handle_, column);
  return bytes == nullptr ? std::string_view{} : std::string_view(static_cast<const char*>(bytes), std::size_t(size));
}

std::string Statement::text_at(int column) const { return std::string(view_at(column)); }
std::int64_t Statement::integer_at(int column) const { return sqlite3_column_int64(handle_, column); }
double Statement::real_at(int column) const { return sqlite3_column_double(handle_, column); }

Result<Transaction> Transaction::begin(Database& database) {
  TRY(database.run("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Transaction::Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}

Transaction::~Transaction() {
  // After some failures SQLite has rolled back by itself; the error then says only that.
  if (database_ != nullptr) (void)database_->run("ROLLBACK");
}

Status Transaction::commit() {
  TRY(database_->run("COMMIT"));
  database_ = nullptr;
  return {};
}

}  // namespace tunerd::cache
