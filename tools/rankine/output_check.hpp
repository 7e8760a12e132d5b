#pragma once

#include <string>

namespace rankine {

/// Makes sure, before hours of training, that a file can be written at `path`; leaves nothing behind. `flag`
/// is who asks, for messages: "--output". Throws ConfigError.
void check_can_write(const std::string& flag, const std::string& path);

}  // namespace rankine
