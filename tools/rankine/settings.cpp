#include "tools/rankine/settings.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/error.hpp"
#include "runtime/model/known_words.hpp"
#include "tools/rankine/flag_parser.hpp"
#include "tools/rankine/job_file.hpp"

namespace rankine {
namespace {

/// Settings that answer the same question: at most one of each may be given.
constexpr std::array<std::array<std::string_view, 3>, 3> k_alternatives{
    {{"data", "text", "tokens"}, {"epochs", "steps", ""}, {"weights", "init-from", ""}}};

std::int64_t whole_number(const Setting& row, const Given& given) {
  std::int64_t value = 0;
  const char* end = given.text.data() + given.text.size();
  const auto [rest, error] = std::from_chars(given.text.data(), end, value);
  if (error != std::errc() || rest != end || value < row.least || value > row.most) {
    const bool open = row.most == std::numeric_limits<std::int64_t>::max();
    throw UsageError(given.origin + " must be a whole number " + (open ? "of at least " : "from ") +
                     std::to_string(row.least) + (open ? "" : " to " + std::to_string(row.most)) + ", not '" +
                     given.text + "'");
  }
  return value;
}

void apply(const Setting& row, const Given& given, Settings& settings) {
  if (const auto* text = std::get_if<std::string Settings::*>(&row.target)) {
    if (given.text.empty()) throw UsageError(given.origin + " is empty");
    settings.** text = given.text;
  } else if (const auto* number = std::get_if<std::int64_t Settings::*>(&row.target)) {
    settings.** number = whole_number(row, given);
  } else if (given.text == "true" || given.text == "false") {
    settings.*std::get<bool Settings::*>(row.target) = given.text == "true";
  } else {
    throw UsageError(given.origin + " must be true or false, not '" + given.text + "'");
  }
}

std::string scalar(const JobEntry& entry) {
  if (entry.is_list || entry.values.size() != 1) {
    throw UsageError(entry.origin + ": '" + entry.key + "' takes one value; write texts in quotes");
  }
  return entry.values.front();
}

/// One value of [compile] as JSON: JSON itself, a number, true or false, or a text.
nlohmann::json json_of(const JobEntry& entry, const std::string& value) {
  auto parsed = nlohmann::json::parse(value, nullptr, false);
  if (!parsed.is_discarded()) return parsed;
  if (value.starts_with('{') || value.starts_with('[')) {
    throw UsageError(entry.origin + ": '" + entry.key + "' isn't valid JSON: " + value);
  }
  return value;
}

std::string compile_override(const JobEntry& entry) {
  if (!entry.is_list) return json_of(entry, scalar(entry)).dump();
  auto list = nlohmann::json::array();
  for (const std::string& value : entry.values) list.push_back(json_of(entry, value));
  return list.dump();
}

void read_section(const JobEntry& entry, Settings& settings) {
  if (entry.section == "compile") {
    settings.compile[entry.key] = compile_override(entry);
  } else if (entry.section == "inputs") {
    if (scalar(entry) != "arange") {
      throw UsageError(entry.origin + ": '" + entry.key + "' can be \"arange\" only, not \"" + scalar(entry) +
                       "\"");
    }
    settings.arange_inputs.push_back(entry.key);
  } else {
    throw UsageError(entry.origin + ": there is no section [" + entry.section +
                     "]; there are [inputs] and [compile]");
  }
}

/// Keys of the job file join what the flags gave, unless a flag gave the same or an alternative to it.
void add_job_file(ModelCommand command, Settings& settings, GivenSettings& given) {
  const GivenSettings flags = given;
  const auto answered = [&](std::string_view name) {
    if (flags.contains(name)) return true;
    return std::any_of(k_alternatives.begin(), k_alternatives.end(), [&](const auto& group) {
      return std::find(group.begin(), group.end(), name) != group.end() &&
             std::any_of(group.begin(), group.end(),
                         [&](std::string_view other) { return flags.contains(other); });
    });
  };
  for (const JobEntry& entry : read_job_file(given.at("config").text)) {
    if (!entry.section.empty()) {
      read_section(entry, settings);
      continue;
    }
    const Setting* row = entry.key == "config" ? nullptr : find_setting(entry.key, k_all_commands);
    if (row == nullptr) {
      std::vector<std::string> keys = setting_names(k_all_commands);
      std::erase(keys, "config");
      throw UsageError(entry.origin + ": there is no key '" + entry.key + "'" +
                       did_you_mean(entry.key, keys, "") +
                       " The keys are the flags of train, evaluate and predict");
    }
    const Given job{scalar(entry), entry.origin + ": " + entry.key};
    Settings unused;
    apply(*row, job, unused);  // a wrong value is wrong also where a flag wins
    if (find_setting(entry.key, bit(command)) != nullptr && !answered(row->name)) given[row->name] = job;
  }
}

void check_alternatives(const GivenSettings& given) {
  for (const auto& group : k_alternatives) {
    std::vector<std::string> both;
    for (const std::string_view name : group) {
      if (given.contains(name)) both.push_back(given.at(name).origin);
    }
    if (both.size() > 1)
      throw UsageError(both[0] + " and " + both[1] + " exclude each other: give one of them");
  }
}

void check(ModelCommand command, const Settings& settings, const GivenSettings& given) {
  if (settings.model.empty())
    throw UsageError("--model is missing: the Keras model to " + std::string(name_of(command)));
  const bool ids = !settings.text.empty() || !settings.tokens.empty();
  if (settings.data.empty() && !ids) {
    throw UsageError(command == ModelCommand::predict
                         ? "there is no data: give --data FILE.h5"
                         : "there is no data: give --data FILE.h5, --text FILE or --tokens FILE");
  }
  if (command == ModelCommand::predict && settings.output.empty())
    throw UsageError("--output is missing: the HDF5 file to write the predictions to");
  if (!settings.vocabulary.empty() && settings.text.empty())
    throw UsageError(given.at("vocabulary").origin + " goes with --text only");
  if (command == ModelCommand::evaluate && !settings.text.empty() && settings.vocabulary.empty())
    throw UsageError(
        "--vocabulary is missing: the text that the model was trained on, whose bytes are its ids");
  if (given.contains("token-bytes")) {
    if (settings.token_bytes != 2 && settings.token_bytes != 4) {
      throw UsageError(given.at("token-bytes").origin + " must be 2 or 4, not '" +
                       given.at("token-bytes").text + "'");
    }
    if (settings.tokens.empty())
      throw UsageError(given.at("token-bytes").origin + " goes with --tokens only");
  }
  if (command != ModelCommand::predict && !settings.arange_inputs.empty() && !ids) {
    throw UsageError(
        "[inputs] of the job file goes with --text or --tokens only: an HDF5 file has all inputs");
  }
}

}  // namespace

Settings parse_settings(ModelCommand command, std::span<const std::string> arguments) {
  GivenSettings given = parse_flags(command, arguments);
  Settings settings;
  if (given.contains("config")) add_job_file(command, settings, given);
  check_alternatives(given);
  for (const Setting& row : setting_table()) {
    if ((row.commands & bit(command)) != 0 && given.contains(row.name))
      apply(row, given.at(row.name), settings);
  }
  check(command, settings, given);
  return settings;
}

std::vector<std::pair<std::string, std::string>> list_settings(const Settings& settings) {
  std::vector<std::pair<std::string, std::string>> list;
  for (const Setting& row : setting_table()) {
    if (&row != find_setting(row.name, k_all_commands)) continue;  // several commands' words for one value
    std::string value;
    if (const auto* text = std::get_if<std::string Settings::*>(&row.target)) {
      value = settings.**text;
    } else if (const auto* number = std::get_if<std::int64_t Settings::*>(&row.target)) {
      value = std::to_string(settings.**number);
    } else {
      value = settings.*std::get<bool Settings::*>(row.target) ? "true" : "false";
    }
    list.emplace_back(row.name, value);
  }
  for (const std::string& name : settings.arange_inputs) list.emplace_back("[inputs] " + name, "arange");
  for (const auto& [key, value] : settings.compile) list.emplace_back("[compile] " + key, value);
  return list;
}

}  // namespace rankine
