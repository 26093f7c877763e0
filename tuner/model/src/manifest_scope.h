// Which names an expression of a manifest may use, by stage; finds a wrong one when the manifest is read.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "model/manifest.h"

namespace tunerd {

// Each stage sees the names of those before it.
enum class Stage {
  variant,  // parameters, derived values, device symbols, dtype_bytes, has_<tensor>: constant for a kernel
  sized,    // dimensions, ld_<tensor>
  cost      // bytes_<tensor>
};

class ManifestScope {
 public:
  explicit ManifestScope(const OpSpec& op);

  // A parameter or derived value. Errors: no identifier, a name already taken.
  Status declare(const std::string& name, const std::string& path);
  // Reserves the name's macro. Errors: two macros of one name.
  Status define(const std::string& name, const std::string& path);

  Status check(const Expr& expr, const std::string& path, Stage stage) const;
  Result<Expr> expr(const Json& value, const std::string& path, Stage stage) const;
  Result<std::vector<Rule>> rules(const Json* array, const std::string& path, Stage stage) const;

 private:
  std::vector<std::string> variant_, sized_, cost_;
  std::set<std::string> macros_;
};

// [a-z][a-z0-9_]*, at most 64 characters: what may become a macro or a symbol without injecting anything.
bool is_identifier(std::string_view text);
// Upper case, with anything but a letter or digit as '_'.
std::string macro_name(std::string_view text);

}  // namespace tunerd
