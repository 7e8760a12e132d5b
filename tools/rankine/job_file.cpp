#include "tools/rankine/job_file.hpp"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "runtime/error.hpp"

namespace rankine {
namespace {

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

/// Where the comment of a line begins, or its end. A '#' inside quotes begins none.
std::size_t comment_begin(const std::string& line) {
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quote != '\0') {
      if (line[i] == quote) quote = '\0';
    } else if (line[i] == '"' || line[i] == '\'') {
      quote = line[i];
    } else if (line[i] == '#') {
      return i;
    }
  }
  return line.size();
}

/// One statement with its first line: a section's head, or a key with a value, which a list may spread over
/// lines.
struct Statement {
  std::string text;
  int line = 0;
};

std::string where(const std::string& path, int line) {
  return "'" + path + "', line " + std::to_string(line);
}

std::vector<Statement> statements_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw UsageError("can't open the job file '" + path + "': " + std::strerror(errno));
  std::vector<Statement> statements;
  bool in_list = false;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    line = trimmed(line.substr(0, comment_begin(line)));
    if (line.empty()) continue;
    if (in_list) {
      statements.back().text += line;
    } else {
      statements.push_back({line, number});
      const auto equals = line.find('=');
      in_list = equals != std::string::npos && trimmed(line.substr(equals + 1)).starts_with('[');
    }
    in_list = in_list && !line.ends_with(']');
  }
  if (file.bad()) throw UsageError("can't read the job file '" + path + "'");
  if (in_list) throw UsageError(where(path, statements.back().line) + ": the list isn't closed with ']'");
  return statements;
}

/// CLI11 reads the value, the same way as it would in a configuration file of its own.
std::vector<std::string> values_of(const Statement& statement, const std::string& origin) {
  CLI::ConfigTOML reader;
  reader.comment('\0');  // comments are gone, and what looks like one belongs to a text
  std::istringstream text(statement.text);
  const std::vector<CLI::ConfigItem> items = reader.from_config(text);
  if (items.size() != 1) throw UsageError(origin + ": '" + statement.text + "' isn't understood");
  return items.front().inputs;
}

}  // namespace

std::vector<JobEntry> read_job_file(const std::string& path) {
  std::vector<JobEntry> entries;
  std::string section;
  for (const Statement& statement : statements_of(path)) {
    const std::string origin = where(path, statement.line);
    if (statement.text.front() == '[') {
      if (statement.text.back() != ']') throw UsageError(origin + ": a section is written [name]");
      section = trimmed(statement.text.substr(1, statement.text.size() - 2));
      continue;
    }
    const auto equals = statement.text.find('=');
    const std::string key = trimmed(statement.text.substr(0, equals));
    const std::string value = equals == std::string::npos ? "" : trimmed(statement.text.substr(equals + 1));
    if (key.empty() || value.empty()) {
      throw UsageError(origin + ": '" + statement.text + "' isn't of the form key = value");
    }
    for (const JobEntry& other : entries) {
      if (other.section == section && other.key == key) {
        throw UsageError(origin + ": '" + key + "' was already set in " + other.origin);
      }
    }
    entries.push_back({section, key, values_of(statement, origin), value.starts_with('['), origin});
  }
  return entries;
}

}  // namespace rankine
