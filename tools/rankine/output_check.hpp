#pragma once

#include <span>
#include <string>
#include <utility>

namespace rankine {

/// Makes sure, before hours of training, that a file can be written at `path`; leaves nothing behind. `flag`
/// is who asks, for messages: "--output". Throws ConfigError.
void check_can_write(const std::string& flag, const std::string& path);

/// Throws UsageError when `path`, which is to be written, is one of the other files: pairs of a flag and its
/// path, which may be empty.
void check_apart(const std::string& flag, const std::string& path,
                 std::span<const std::pair<std::string, std::string>> others);

}  // namespace rankine
