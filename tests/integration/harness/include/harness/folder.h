// A folder of a test's own, removed with all that is in it.
#pragma once

#include <filesystem>
#include <string>

namespace tunerd::test {

class TemporaryFolder {
 public:
  TemporaryFolder();  // 0700; throws std::runtime_error
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

void write_text(const std::filesystem::path& file, const std::string& text);  // makes the folders
std::string read_text(const std::filesystem::path& file);                     // "" when it is not there

}  // namespace tunerd::test
