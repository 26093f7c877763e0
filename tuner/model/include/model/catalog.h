// Every op and template found in the template folders, read once at start; immutable afterwards.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "model/manifest.h"
#include "model/source.h"

namespace tunerd {

struct Template {
  Manifest manifest;
  SourceClosure closure;
};

struct OpEntry {
  OpSpec op;
  SourceClosure reference;          // closure of the reference kernel
  std::vector<Template> templates;  // sorted by name
};

class Catalog {
 public:
  // Each folder holds <op>/op.json and <op>/<template>.json. A later folder may add templates to an earlier one's op
  // (no op.json needed) or new ops; a name defined twice is an error naming both files. Quoted includes resolve in the
  // op's folder, then in the template folder itself ("device/…" of the first folder is visible to all). A file that
  // escapes its folder is refused.
  static Result<Catalog> load(const std::vector<std::filesystem::path>& folders);

  const std::map<std::string, OpEntry>& ops() const { return ops_; }
  Result<const OpEntry*> op(const std::string& name) const;  // near match on a miss
  Result<const Template*> find_template(const std::string& name) const;
  // Digest over every op and template: changes when any file does.
  const std::string& digest() const { return digest_; }

 private:
  std::map<std::string, OpEntry> ops_;
  std::string digest_;
};

}  // namespace tunerd
