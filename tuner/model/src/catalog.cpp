#include "model/catalog.h"

#include <algorithm>

#include "model/digest.h"
#include "source_paths.h"

namespace tunerd {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxEntries = 4096;  // of one folder
constexpr std::int64_t kMaxJsonBytes = 1 << 20;

// Names in `folder`, sorted, hidden ones left out, so that loading does not depend on the file system's order.
Result<std::vector<std::string>> list(const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator it(folder, error);
  std::vector<std::string> names;
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name[0] == '.') continue;
    if (names.size() >= kMaxEntries) return bad_input("templates", folder.string(), "at most 4096 entries in a folder");
    names.push_back(std::move(name));
  }
  if (error) return fail(Code::io, folder.string() + ": " + error.message());
  std::sort(names.begin(), names.end());
  return names;
}

// A folder named twice (by a flag and by the environment, say) is read once.
std::vector<fs::path> each_once(const std::vector<fs::path>& folders) {
  std::vector<fs::path> roots;
  for (const fs::path& folder : folders) {
    const bool known = std::any_of(roots.begin(), roots.end(), [&](const fs::path& root) {
      std::error_code error;
      return fs::equivalent(root, folder, error);
    });
    if (!known) roots.push_back(folder);
  }
  return roots;
}

struct OpFolder {
  fs::path root;  // the template folder
  std::string name;
  fs::path path() const { return root / name; }
};

Result<std::vector<OpFolder>> op_folders(const std::vector<fs::path>& roots) {
  std::vector<OpFolder> folders;
  for (const fs::path& root : roots) {
    std::error_code error;
    if (!fs::is_directory(root, error)) {
      return Unexpected(Error{Code::missing,
                              root.string() + " is no folder",
                              "templates",
                              root.string(),
                              "a folder of <op>/op.json and <op>/<template>.json",
                              {}});
    }
    TRY_ASSIGN(const std::vector<std::string> names, list(root));
    for (const std::string& name : names) {
      if (name != "device" && fs::is_directory(root / name, error)) folders.push_back({root, name});
    }
  }
  return folders;
}

Result<Json> read_inside(const OpFolder& folder, const std::string& file) {
  TRY_ASSIGN(const fs::path path, resolve_inside(folder.root, folder.name + "/" + file));
  return read_json_file(path, kMaxJsonBytes);
}

class Loader {
 public:
  explicit Loader(const std::vector<fs::path>& roots) : roots_(roots) {}

  Status load_op(const OpFolder& folder) {
    std::error_code error;
    const fs::path file = folder.path() / "op.json";
    if (!fs::exists(fs::symlink_status(file, error))) return {};
    TRY_ASSIGN(const Json document, read_inside(folder, "op.json"));
    TRY_ASSIGN(OpSpec op, parse_op(document, file.string()));
    if (op.name != folder.name) {
      return bad_input(file.string() + ".op", op.name, folder.name + ", the name of its folder");
    }
    const auto known = ops.find(op.name);
    if (known != ops.end()) {
      return bad_input(file.string() + ".op", op.name,
                       "a name that " + (known->second.op.folder / "op.json").string() + " does not define already");
    }
    op.folder = folder.path();
    OpEntry entry;
    TRY_ASSIGN(entry.reference, closure(folder, op.folder, op.reference.source, file.string() + ".reference.source"));
    note(op.name, document.dump(), entry.reference.digest);
    entry.op = std::move(op);
    ops.emplace(entry.op.name, std::move(entry));
    return {};
  }

  Status load_templates(const OpFolder& folder) {
    TRY_ASSIGN(const std::vector<std::string> names, list(folder.path()));
    for (const std::string& name : names) {
      if (name == "op.json" || fs::path(name).extension() != ".json") continue;
      const auto entry = ops.find(folder.name);
      if (entry == ops.end()) return unknown_name((folder.path() / name).string(), folder.name, op_names());
      TRY(load_template(folder, name, entry->second));
    }
    return {};
  }

  std::vector<std::string> op_names() const {
    std::vector<std::string> names;
    for (const auto& entry : ops) names.push_back(entry.first);
    return names;
  }

  std::string digest() {
    std::sort(noted_.begin(), noted_.end());
    std::string bytes;
    for (const std::string& text : noted_) bytes.append(text);
    return sha256_hex(bytes);
  }

  std::map<std::string, OpEntry> ops;

 private:
  Status load_template(const OpFolder& folder, const std::string& name, OpEntry& entry) {
    const std::string file = (folder.path() / name).string();
    TRY_ASSIGN(const Json document, read_inside(folder, name));
    TRY_ASSIGN(Manifest manifest, parse_manifest(document, entry.op, file));
    manifest.folder = folder.path();
    const auto [known, fresh] = defined_in_.emplace(manifest.name, file);
    if (!fresh) {
      return bad_input(file + ".template", manifest.name, "a name that " + known->second + " does not define already");
    }
    Template added;
    TRY_ASSIGN(added.closure, closure(folder, entry.op.folder, manifest.source, file + ".source"));
    added.manifest = std::move(manifest);
    note(added.manifest.name, document.dump(), added.closure.digest);
    const auto before = std::find_if(entry.templates.begin(), entry.templates.end(),
                                     [&](const Template& other) { return other.manifest.name > added.manifest.name; });
    entry.templates.insert(before, std::move(added));
    return {};
  }

  // Headers: the source's own folder, its op's, its template folder, then the other template folders in order.
  Result<SourceClosure> closure(const OpFolder& folder, const fs::path& op_folder, const std::string& source,
                                const std::string& field) const {
    // The folder may itself be a link; what is read must still lie in the template folder.
    if (auto inside = resolve_inside(folder.root, folder.name + "/" + source); !inside) {
      Error error = std::move(inside).error();
      error.message = field + ": " + error.message;
      error.field = field;
      error.value = source;
      return Unexpected(std::move(error));
    }
    std::vector<fs::path> include_roots{op_folder, folder.root};
    for (const fs::path& root : roots_) {
      if (root != folder.root) include_roots.push_back(root);
    }
    return load_closure(folder.path(), source, include_roots);
  }

  void note(const std::string& name, const std::string& document, const std::string& closure_digest) {
    noted_.push_back(name + " " + sha256_hex(document) + " " + closure_digest + "\n");
  }

  const std::vector<fs::path>& roots_;
  std::map<std::string, std::string> defined_in_;  // template -> file
  std::vector<std::string> noted_;
};

}  // namespace

Result<Catalog> Catalog::load(const std::vector<fs::path>& folders) {
  if (folders.empty()) return bad_input("templates", "(none)", "at least one template folder");
  const std::vector<fs::path> roots = each_once(folders);
  TRY_ASSIGN(const std::vector<OpFolder> found, op_folders(roots));
  Loader loader(roots);
  // Ops first: any folder may bring templates for any folder's op.
  for (const OpFolder& folder : found) TRY(loader.load_op(folder));
  for (const OpFolder& folder : found) TRY(loader.load_templates(folder));
  Catalog catalog;
  catalog.digest_ = loader.digest();
  catalog.ops_ = std::move(loader.ops);
  return catalog;
}

Result<const OpEntry*> Catalog::op(const std::string& name) const {
  const auto found = ops_.find(name);
  if (found != ops_.end()) return &found->second;
  std::vector<std::string> names;
  for (const auto& entry : ops_) names.push_back(entry.first);
  return unknown_name("op", name, names);
}

Result<const Template*> Catalog::find_template(const std::string& name) const {
  std::vector<std::string> names;
  for (const auto& entry : ops_) {
    for (const Template& candidate : entry.second.templates) {
      if (candidate.manifest.name == name) return &candidate;
      names.push_back(candidate.manifest.name);
    }
  }
  return unknown_name("template", name, names);
}

}  // namespace tunerd
