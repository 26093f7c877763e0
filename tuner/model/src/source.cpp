#include "model/source.h"

#include <algorithm>
#include <map>

#include "model/digest.h"
#include "model/environment.h"
#include "model/json_reader.h"
#include "source_paths.h"
#include "source_scan.h"

namespace tunerd {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFiles = 64;
constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

// Length-prefixed, so that no two lists of fields give the same bytes.
void append_field(std::string& bytes, std::string_view field) {
  bytes.append(std::to_string(field.size())).append(":").append(field);
}

class ClosureLoader {
 public:
  ClosureLoader(const fs::path& folder, const std::vector<fs::path>& include_roots) {
    roots_.push_back(folder);
    roots_.insert(roots_.end(), include_roots.begin(), include_roots.end());
  }

  Result<SourceClosure> load(const std::string& file) {
    const Result<fs::path> path = resolve_inside(roots_.front(), file);
    if (!path) return Unexpected(path.error());
    TRY_ASSIGN(std::string text, read(*path));
    TRY(follow(text, path->string()));
    SourceClosure closure;
    closure.name = file;
    closure.text = std::move(text);
    std::string bytes;
    append_field(bytes, closure.name);
    append_field(bytes, closure.text);
    for (auto& [name, header] : headers_) {
      append_field(bytes, name);
      append_field(bytes, header);
      closure.headers.emplace_back(name, std::move(header));
    }
    closure.digest = sha256_hex(bytes);
    return closure;
  }

 private:
  Result<std::string> read(const fs::path& path) {
    if (++files_ > kMaxFiles) {
      return bad_input(path.string(), std::to_string(files_) + " files",
                       "at most 64 files in a source and its headers");
    }
    TRY_ASSIGN(std::string text, read_text_file(path, static_cast<std::int64_t>(kMaxBytes)));
    bytes_ += text.size();
    if (bytes_ <= kMaxBytes) return text;
    return bad_input(path.string(), std::to_string(bytes_) + " bytes", "at most 1 MiB in a source and its headers");
  }

  // Worklist rather than recursion: a chain of headers is as deep as an author likes.
  Status follow(const std::string& source, const std::string& source_file) {
    std::vector<std::pair<std::string, std::string>> open{{source_file, source}};
    while (!open.empty()) {
      const auto [file, text] = std::move(open.back());
      open.pop_back();
      TRY_ASSIGN(const std::vector<IncludeLine> includes, scan_includes(text, file));
      for (const IncludeLine& include : includes) {
        if (headers_.count(include.name) != 0) continue;
        TRY_ASSIGN(const fs::path path, find(include, file));
        TRY_ASSIGN(std::string header, read(path));
        open.emplace_back(path.string(), header);
        headers_.emplace(include.name, std::move(header));
      }
    }
    return {};
  }

  Result<fs::path> find(const IncludeLine& include, const std::string& file) const {
    const std::string where = file + ":" + std::to_string(include.line);
    std::string tried;
    for (const fs::path& root : roots_) {
      Result<fs::path> path = resolve_inside(root, include.name);
      if (path) return path;
      if (path.error().code != Code::not_found) {
        Error error = std::move(path).error();
        error.message = where + ": " + error.message;
        error.field = where;
        return Unexpected(std::move(error));
      }
      tried.append(tried.empty() ? "a file in " : " or ").append(root.string());
    }
    return Unexpected(Error{
        Code::not_found, where + ": there is no header \"" + include.name + "\"", where, include.name, tried, {}});
  }

  std::vector<fs::path> roots_;
  std::map<std::string, std::string> headers_;
  std::size_t files_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace

Result<fs::path> resolve_inside(const fs::path& root, const std::string& name) {
  const fs::path relative(name);
  const bool leaves = name.empty() || relative.is_absolute() || name.find('\0') != std::string::npos ||
                      std::any_of(relative.begin(), relative.end(), [](const fs::path& part) { return part == ".."; });
  if (leaves) return bad_input("include", name, "a relative name without '..'");
  std::error_code error;
  const fs::path folder = fs::canonical(root, error);
  if (error) return fail(Code::not_found, root.string() + ": " + error.message());
  const fs::path path = fs::canonical(folder / relative, error);
  if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory) {
    return fail(Code::not_found, (folder / relative).string() + " does not exist");
  }
  if (error) return fail(Code::io, (folder / relative).string() + ": " + error.message());
  const auto [end, inside] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  static_cast<void>(inside);
  if (end != folder.end()) {
    return Unexpected(Error{Code::denied,
                            name + " links out of its folder",
                            "include",
                            path.string(),
                            "a file inside " + folder.string(),
                            {}});
  }
  if (!fs::is_regular_file(path, error)) return bad_input("include", path.string(), "a regular file");
  return path;
}

Result<SourceClosure> load_closure(const fs::path& folder, const std::string& file,
                                   const std::vector<fs::path>& include_roots) {
  return ClosureLoader(folder, include_roots).load(file);
}

std::string kernel_key(const SourceClosure& closure, const std::string& entry, const std::vector<std::string>& defines,
                       const std::string& arch, const std::string& nvrtc_version) {
  std::string bytes;
  append_field(bytes, closure.digest);
  append_field(bytes, entry);
  std::vector<std::string> sorted = defines;
  std::sort(sorted.begin(), sorted.end());
  append_field(bytes, std::to_string(sorted.size()));
  for (const std::string& define : sorted) append_field(bytes, define);
  append_field(bytes, arch);
  append_field(bytes, nvrtc_version);
  for (const std::string& option : fixed_nvrtc_options()) append_field(bytes, option);
  return sha256_hex(bytes);
}

}  // namespace tunerd
