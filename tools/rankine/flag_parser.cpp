#include "tools/rankine/flag_parser.hpp"

#include <CLI/CLI.hpp>
#include <sstream>

#include "runtime/error.hpp"
#include "runtime/model/known_words.hpp"

namespace rankine {
namespace {

constexpr std::size_t k_help_column = 28;  // where descriptions begin
constexpr std::size_t k_help_width = 82;   // of a description

std::string flag_of(std::string_view name) {
  return "--" + std::string(name);
}

/// The flags' definitions for CLI11, which splits the arguments and writes the help; values stay texts.
struct FlagParser {
  const CommandText& command;
  CLI::App app;
  std::map<std::string_view, std::string> texts;
  std::map<std::string_view, bool> switches;

  explicit FlagParser(ModelCommand use)
      : command(text_of(use)), app(std::string(command.summary), "rankine " + std::string(command.name)) {
    app.allow_extras();
    app.footer(std::string(command.examples));
    app.set_help_flag();  // help is answered before MPI is touched
    app.get_formatter()->column_width(k_help_column);
    for (const Setting& row : setting_table()) {
      if (!takes(row)) continue;
      const std::string help = wrapped(std::string(row.help) + default_of(row));
      if (is_switch(row)) {
        app.add_flag(flag_of(row.name), switches[row.name], help)->group(std::string(row.group));
      } else {
        app.add_option(flag_of(row.name), texts[row.name], help)
            ->type_name(std::string(row.placeholder))
            ->group(std::string(row.group));
      }
    }
  }

  bool takes(const Setting& row) const { return (row.commands & bit(command.command)) != 0; }
  std::string see_help() const { return " See rankine " + std::string(command.name) + " --help"; }

  static std::string default_of(const Setting& row) {
    const auto* number = std::get_if<std::int64_t Settings::*>(&row.target);
    const std::int64_t value = number == nullptr ? 0 : Settings{}.**number;
    return value == 0 ? "" : " (default " + std::to_string(value) + ")";
  }

  /// Lines of bearable length; CLI11 indents them.
  static std::string wrapped(const std::string& text) {
    std::string lines;
    std::size_t used = 0;
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      const bool breaks = used > 0 && used + 1 + word.size() > k_help_width;
      if (used > 0) lines += breaks ? '\n' : ' ';
      used = (breaks || used == 0 ? 0 : used + 1) + word.size();
      lines += word;
    }
    return lines;
  }

  GivenSettings parse(std::span<const std::string> arguments) {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 wants them
    try {
      app.parse(reversed);
    } catch (const CLI::ParseError& error) {
      throw UsageError(std::string(error.what()) + "." + see_help());
    }
    refuse_extras();
    GivenSettings given;
    for (const Setting& row : setting_table()) {
      if (!takes(row) || app.count(flag_of(row.name)) == 0) continue;
      given[row.name] = {is_switch(row) ? "true" : texts[row.name], flag_of(row.name)};
    }
    return given;
  }

  void refuse_extras() const {
    const std::vector<std::string> extras = app.remaining();
    if (extras.empty()) return;
    const std::string& word = extras.front();
    if (!word.starts_with("-")) {
      throw UsageError("'" + word + "' isn't a flag, and " + std::string(command.name) +
                       " takes nothing else." + see_help());
    }
    const std::string name = word.substr(
        word.find_first_not_of('-') == std::string::npos ? word.size() : word.find_first_not_of('-'));
    if (find_setting(name, k_all_commands) != nullptr)
      throw UsageError(std::string(command.name) + " doesn't take the flag " + word + "." + see_help());
    throw UsageError("there is no flag " + word +
                     did_you_mean(name, setting_names(bit(command.command)), "--") + see_help());
  }
};

}  // namespace

GivenSettings parse_flags(ModelCommand command, std::span<const std::string> arguments) {
  return FlagParser(command).parse(arguments);
}

std::string settings_help(ModelCommand command) {
  return FlagParser(command).app.help();
}

}  // namespace rankine
