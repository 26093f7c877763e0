#include "cache/store.h"

#include "schema.h"
#include "store_impl.h"

namespace tunerd::cache {
namespace {

namespace fs = std::filesystem;

// quick_check reads the whole file once: what it misses (a flipped byte inside a blob or a text) the digests catch.
Status check_integrity(Database& database) {
  TRY_ASSIGN(const std::string verdict, database.first_text("PRAGMA quick_check(1)"));
  if (verdict == "ok") return {};
  return fail(Code::corrupt, "The cache database " + database.file().string() + " is malformed: " + verdict + ".");
}

Status limit_size(Database& database, std::int64_t max_bytes) {
  if (max_bytes <= 0) return {};
  TRY_ASSIGN(const std::int64_t page_bytes, database.integer("PRAGMA page_size"));
  const std::int64_t pages = max_bytes / (page_bytes > 0 ? page_bytes : 4096);
  // PRAGMA takes no parameters; the number is our own.
  return database.run_script(("PRAGMA max_page_count = " + std::to_string(pages > 1 ? pages : 1)).c_str());
}

Result<std::unique_ptr<Database>> open_owned(const OpenOptions& options) {
  TRY_ASSIGN(std::unique_ptr<Database> database, Database::open(options.folder / kDatabaseFile, Database::Mode::owner));
  TRY(check_integrity(*database));
  TRY(migrate(*database, migrations()));
  TRY_ASSIGN(const std::string journal, database->first_text("PRAGMA journal_mode = WAL"));
  if (journal != "wal") {
    return fail(Code::io, "The cache database " + database->file().string() + " cannot use write-ahead logging (got '" +
                              journal + "'): use a folder on a local file system.");
  }
  // NORMAL: a power cut may lose the last commits, never mix them, and what is lost is measured again. Only the
  // quarantine is written with FULL: what hung the machine once must still be known after the reset.
  TRY(database->run("PRAGMA synchronous = NORMAL"));
  TRY(database->run("PRAGMA journal_size_limit = 67108864"));
  TRY(limit_size(*database, options.max_bytes));
  return database;
}

// Renames the database and its log to a dated name; nothing is deleted.
Result<std::string> set_aside(const fs::path& folder) {
  std::string stamp = utc_now();
  std::erase_if(stamp, [](char c) { return c == '-' || c == ':'; });
  std::error_code error;
  fs::path aside = folder / (std::string(kDatabaseFile) + ".corrupt-" + stamp);
  for (int n = 2; fs::exists(aside, error); ++n) {
    aside = folder / (std::string(kDatabaseFile) + ".corrupt-" + stamp + "-" + std::to_string(n));
  }
  for (const char* part : {"-wal", "-shm", ""}) {
    const fs::path from = folder / (std::string(kDatabaseFile) + part);
    if (!fs::exists(from, error)) continue;
    fs::rename(from, aside.string() + part, error);
    if (error) return fail(Code::io, "Cannot set " + from.string() + " aside: " + error.message() + ".");
  }
  return aside.string();
}

Result<std::unique_ptr<Database>> open_immutable(const fs::path& folder) {
  TRY(check_folder(folder));
  const fs::path file = folder / kDatabaseFile;
  TRY(check_file(file));
  std::error_code error;
  if (!fs::exists(file, error)) {
    return fail(Code::missing, "The folder " + folder.string() + " holds no cache: " + kDatabaseFile + " is missing.");
  }
  // Immutable opening ignores the log, and would serve half of a checkpoint.
  const auto log_bytes = fs::file_size(file.string() + "-wal", error);
  if (!error && log_bytes > 0) {
    return fail(Code::busy, "The cache " + folder.string() +
                                " was not closed cleanly: open it once writable, then serve it read-only.");
  }
  TRY_ASSIGN(std::unique_ptr<Database> database, Database::open(file, Database::Mode::immutable));
  TRY(check_integrity(*database));
  TRY(require_schema(*database, migrations()));
  return database;
}

Status refuse_network(const OpenOptions& options) {
  TRY_ASSIGN(const std::int64_t type,
             options.filesystem_type ? options.filesystem_type(options.folder) : filesystem_type(options.folder));
  const std::string network = network_filesystem(type);
  if (network.empty()) return {};
  return fail(Code::unsupported,
              "The cache " + options.folder.string() + " lies on " + network +
                  ", where write-ahead logging and file locks are not safe: put the cache on a local "
                  "file system, and give this folder as the read-only base if its results are wanted.");
}

}  // namespace

Result<Store> Store::open(const OpenOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  if (options.folder.empty()) return bad_input("cache folder", "", "a folder");
  if (std::error_code error; options.base && fs::equivalent(options.folder, *options.base, error) && !error) {
    return bad_input("cache base", options.base->string(), "another folder than the cache itself");
  }
  if (options.base) {
    TRY_ASSIGN(impl->base_lock, FolderLock::share(*options.base));
    TRY_ASSIGN(impl->base, open_immutable(*options.base));
  }
  if (options.read_only) {
    TRY_ASSIGN(impl->lock, FolderLock::share(options.folder));
    TRY_ASSIGN(impl->main, open_immutable(options.folder));
    return Store(std::move(impl));
  }
  TRY(make_folder(options.folder));
  TRY(check_folder(options.folder));
  TRY(refuse_network(options));
  TRY_ASSIGN(impl->lock, FolderLock::own(options.folder));
  TRY(check_file(options.folder / kDatabaseFile));
  auto opened = open_owned(options);
  if (!opened && opened.error().code == Code::corrupt) {
    const std::string why = opened.error().message;
    TRY_ASSIGN(const std::string aside, set_aside(options.folder));
    impl->warn(why + " It was set aside as " + aside + ", and an empty cache started.");
    opened = open_owned(options);
  }
  TRY_ASSIGN(impl->main, std::move(opened));
  return Store(std::move(impl));
}

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

const std::vector<std::string>& Store::warnings() const { return impl_->warnings; }

void Store::Impl::warn(std::string text) {
  if (warnings.size() >= kMaxWarnings) warnings.erase(warnings.begin());
  warnings.push_back(std::move(text));
}

Status Store::Impl::writable() const {
  if (!options.read_only) return {};
  return fail(Code::denied, "The cache " + options.folder.string() + " is served read-only; nothing is written to it.");
}

std::vector<Database*> Store::Impl::layers() const {
  std::vector<Database*> all{main.get()};
  if (base) all.push_back(base.get());
  return all;
}

}  // namespace tunerd::cache
