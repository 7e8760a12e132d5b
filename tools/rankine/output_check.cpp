#include "tools/rankine/output_check.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "runtime/error.hpp"

namespace rankine {

void check_can_write(const std::string& flag, const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto refuse = [&](const std::string& why) {
    throw ConfigError(flag + " can't be written to '" + path + "': " + why);
  };
  if (fs::is_directory(path, ignored)) refuse("it is a folder");
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) refuse("it isn't a regular file");
  if (fs::exists(path, ignored) && ::access(path.c_str(), W_OK) != 0) refuse(std::strerror(errno));
  const fs::path parent = fs::path(path).parent_path();
  const fs::path folder = parent.empty() ? fs::path(".") : parent;
  if (!fs::is_directory(folder, ignored)) refuse("there is no folder '" + folder.string() + "'");
  // Permissions alone don't tell: a file system may be read-only, or full.
  std::string probe = (folder / ".rankine-XXXXXX").string();
  const int file = ::mkstemp(probe.data());
  if (file < 0) refuse(std::strerror(errno));
  ::close(file);
  ::unlink(probe.c_str());
}

void check_apart(const std::string& flag, const std::string& path,
                 std::span<const std::pair<std::string, std::string>> others) {
  namespace fs = std::filesystem;
  for (const auto& [other_flag, other] : others) {
    if (other.empty() || flag == other_flag) continue;
    std::error_code ignored;
    const bool same = fs::equivalent(path, other, ignored) ||
                      fs::weakly_canonical(path, ignored) == fs::weakly_canonical(other, ignored);
    if (same) throw UsageError(flag + " and " + other_flag + " are the same file, '" + path + "'");
  }
}

}  // namespace rankine
