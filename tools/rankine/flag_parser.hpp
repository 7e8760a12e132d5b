#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/rankine/setting_table.hpp"

namespace rankine {

/// A value as it was written, before it is understood.
struct Given {
  std::string text;
  std::string origin;  ///< "--batch", or the line of the job file and the key
};
using GivenSettings = std::map<std::string_view, Given>;

/// The flags among the arguments after a command's name. Throws UsageError for anything else that stands
/// there.
GivenSettings parse_flags(ModelCommand command, std::span<const std::string> arguments);

/// The text of `rankine COMMAND --help`.
std::string settings_help(ModelCommand command);

}  // namespace rankine
