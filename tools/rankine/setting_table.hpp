#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tools/rankine/settings.hpp"

namespace rankine {

constexpr unsigned bit(ModelCommand command) {
  return static_cast<unsigned>(command);
}
inline constexpr unsigned k_all_commands =
    bit(ModelCommand::train) | bit(ModelCommand::evaluate) | bit(ModelCommand::predict);

/// One row of the table of settings. Flags, help, keys of the job file and checks follow from it.
struct Setting {
  using Target = std::variant<std::string Settings::*, std::int64_t Settings::*, bool Settings::*>;
  std::string_view name;         ///< "batch": --batch, and `batch` in a job file
  std::string_view placeholder;  ///< "N" in help; "" for a switch
  std::string_view group;        ///< in help
  unsigned commands;             ///< that take it: bits of ModelCommand
  Target target;
  std::string_view help;
  std::int64_t least = 0;  ///< of a number
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
};

/// A setting may have several rows, for commands that say different things of it.
std::span<const Setting> setting_table();
/// The row of this name for one of these commands, or null.
const Setting* find_setting(std::string_view name, unsigned commands);
std::vector<std::string> setting_names(unsigned commands);
bool is_switch(const Setting& row);

/// What a command's help says around its flags.
struct CommandText {
  ModelCommand command;
  std::string_view name, summary, examples;
};

const CommandText& text_of(ModelCommand command);

}  // namespace rankine
