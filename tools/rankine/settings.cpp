#include "tools/rankine/settings.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "runtime/error.hpp"
#include "runtime/model/config_reader.hpp"
#include "tools/rankine/job_file.hpp"

namespace rankine {
namespace {

constexpr std::string_view k_model_and_data = "Model and data";
constexpr std::string_view k_steps = "Steps";
constexpr std::string_view k_machine = "Ranks and speed (none of these changes a bit of the result)";
constexpr std::string_view k_output = "Output";
constexpr std::string_view k_job_file = "Job file";
constexpr std::int64_t k_most_epochs = 100'000'000;  // so that all steps can be counted
constexpr std::int64_t k_most_parts = 1'000'000;
constexpr std::int64_t k_most_threads = 1024;
constexpr std::size_t k_help_column = 28;  // where descriptions begin
constexpr std::size_t k_help_width = 82;   // of a description

constexpr unsigned bit(ModelCommand command) {
  return static_cast<unsigned>(command);
}
constexpr unsigned k_train = bit(ModelCommand::train), k_evaluate = bit(ModelCommand::evaluate),
                   k_predict = bit(ModelCommand::predict), k_all = k_train | k_evaluate | k_predict;

constexpr std::array k_settings{
    Setting{"model", "FILE", k_model_and_data, k_all, &Settings::model,
            "Keras 3 model: .keras, a folder with its content, or the .json of model.to_json()"},
    Setting{
        "weights", "FILE", k_model_and_data, k_all, &Settings::weights,
        "take these: .weights.h5, or the .weights.json of sharded ones (default: those of the model file; "
        "a .json has none); training also goes on from the optimizer's state in them"},
    Setting{"init-from", "FILE", k_model_and_data, k_train, &Settings::init_from,
            "in place of --weights: take the weights alone, and begin with a new optimizer"},
    Setting{"data", "FILE", k_model_and_data, k_all, &Settings::data,
            "HDF5 file with /inputs/<name> and /targets/<name>, first axis = samples, names as in the model; "
            "x and y also serve when there is one"},
    Setting{"text", "FILE", k_model_and_data, k_train | k_evaluate, &Settings::text,
            "in place of --data, for a language model: text, whose characters are the ids"},
    Setting{"tokens", "FILE", k_model_and_data, k_train | k_evaluate, &Settings::tokens,
            "in place of --data, for a language model: raw little-endian token ids"},
    Setting{"token-bytes", "2|4", k_model_and_data, k_train | k_evaluate, &Settings::token_bytes,
            "bytes of one id in --tokens", 2},
    Setting{"validation-data", "FILE", k_model_and_data, k_train, &Settings::validation_data,
            "evaluated after every epoch; a file of the same kind as the training data"},
    Setting{"batch", "N", k_steps, k_all, &Settings::batch,
            "global batch: samples of one step over all ranks", 1},
    Setting{"epochs", "E", k_steps, k_train, &Settings::epochs, "how often to go through the data", 1,
            k_most_epochs},
    Setting{"steps", "S", k_steps, k_train, &Settings::steps, "in place of --epochs: train up to step S", 1},
    Setting{"seed", "K", k_steps, k_train, &Settings::seed,
            "of the order of the samples, of dropout, and of initial weights"},
    Setting{"no-shuffle", "", k_steps, k_train, &Settings::no_shuffle,
            "take the samples in the order of the file"},
    Setting{"mesh", "SHAPE", k_machine, k_all, &Settings::mesh, "data=N for N ranks, or auto: all ranks"},
    Setting{"accumulate", "N", k_machine, k_all, &Settings::accumulate,
            "work through a step's batch in N parts, to use less memory", 1, k_most_parts},
    Setting{"threads", "N", k_machine, k_all, &Settings::threads,
            "of each rank (default: its share of the cores that it may use)", 1, k_most_threads},
    Setting{"bucket-bytes", "N", k_machine, k_train, &Settings::bucket_bytes,
            "gradients that travel together", 1},
    Setting{"isa", "SET", k_machine, k_all, &Settings::isa,
            "portable, avx2, avx512, or best: the best there is"},
    Setting{"output", "FILE", k_output, k_train, &Settings::output,
            "write the trained model, with the optimizer's state: .keras or .weights.h5, for Keras to load"},
    Setting{
        "output", "FILE", k_output, k_predict, &Settings::output,
        "write the predictions here: an HDF5 file with /outputs/<name>, samples in the order of the data"},
    Setting{"dry-run", "", k_output, k_train, &Settings::dry_run,
            "two steps and a save that is removed again: shows that the job works and how long it will take"},
    Setting{"log", "FILE.jsonl", k_output, k_train | k_evaluate, &Settings::log,
            "append one JSON object a line: start, every step, every epoch, end"},
    Setting{"quiet", "", k_output, k_all, &Settings::quiet, "print nothing but errors and results"},
    Setting{"config", "JOB.toml", k_job_file, k_all, &Settings::config,
            "job file: every flag is also a key of it, and the flag wins"},
};

/// Settings that answer the same question: at most one of each may be given.
constexpr std::array<std::array<std::string_view, 3>, 3> k_alternatives{
    {{"data", "text", "tokens"}, {"epochs", "steps", ""}, {"weights", "init-from", ""}}};

struct CommandText {
  ModelCommand command;
  std::string_view name, summary, examples;
};

constexpr std::string_view k_train_examples = R"(Examples:
  mpirun -n 2 rankine train --model model.keras --data train.h5 --batch 64 --epochs 3 --output trained.keras
  srun --mpi=pmix rankine train --model gpt.keras --text corpus.txt --steps 1000 --config job.toml --log run.jsonl

A job file:
  model = "gpt.keras"
  tokens = "corpus.bin"
  batch = 256

  [inputs]                  # of a language model, besides the ids
  positions = "arange"      # 0, 1, 2, ... in every sample

  [compile]                 # in place of what the model file says, which need not say anything then
  optimizer = "adamw"       # a name, or Keras's JSON in single quotes
  learning_rate = 0.001     # this and any other key is the optimizer's, in Keras's words
  loss = "sparse_categorical_crossentropy"
  metrics = ["accuracy"]
)";

constexpr std::array k_commands{
    CommandText{
        ModelCommand::train, "train",
        "Trains a Keras model on the ranks that mpirun or srun started; any number of them gives the same "
        "bits.",
        k_train_examples},
    CommandText{
        ModelCommand::evaluate, "evaluate",
        "Prints the loss and the metrics of a compiled Keras model over a dataset, the same digits on any "
        "number of ranks.",
        "Example:\n  mpirun -n 2 rankine evaluate --model trained.keras --data test.h5 --batch 64\n"},
    CommandText{
        ModelCommand::predict, "predict",
        "Writes the outputs of a Keras model for every sample of a dataset, the same bits on any number of "
        "ranks.",
        "Example:\n  mpirun -n 2 rankine predict --model trained.keras --data new.h5 --output "
        "predictions.h5\n"},
};

const CommandText& text_of(ModelCommand command) {
  return *std::find_if(k_commands.begin(), k_commands.end(),
                       [&](const CommandText& row) { return row.command == command; });
}

/// A value as it was written, before it is understood.
struct Given {
  std::string text;
  std::string origin;  ///< "--batch", or the line of the job file and the key
  bool by_flag = false;
};
using GivenSettings = std::map<std::string_view, Given>;

const Setting* find_setting(std::string_view name, unsigned commands) {
  const auto found = std::find_if(k_settings.begin(), k_settings.end(), [&](const Setting& row) {
    return row.name == name && (row.commands & commands) != 0;
  });
  return found == k_settings.end() ? nullptr : &*found;
}

bool is_switch(const Setting& row) {
  return std::holds_alternative<bool Settings::*>(row.target);
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known,
                         const std::string& before) {
  const std::string near = nearest_word(word, known);
  return near.empty() ? "." : "; did you mean " + before + near + "?";
}

std::vector<std::string> setting_names(unsigned commands, bool in_job_file) {
  std::vector<std::string> names;
  for (const Setting& row : k_settings) {
    if ((row.commands & commands) != 0 && (!in_job_file || row.name != "config"))
      names.emplace_back(row.name);
  }
  return names;
}

std::string flag_of(std::string_view name) {
  return "--" + std::string(name);
}

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
    for (const Setting& row : k_settings) {
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
    for (const Setting& row : k_settings) {
      if (!takes(row) || app.count(flag_of(row.name)) == 0) continue;
      given[row.name] = {is_switch(row) ? "true" : texts[row.name], flag_of(row.name), true};
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
    if (find_setting(name, k_all) != nullptr)
      throw UsageError(std::string(command.name) + " doesn't take the flag " + word + "." + see_help());
    throw UsageError("there is no flag " + word +
                     did_you_mean(name, setting_names(bit(command.command), false), "--") + see_help());
  }
};

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
    const Setting* row = entry.key == "config" ? nullptr : find_setting(entry.key, k_all);
    if (row == nullptr) {
      throw UsageError(entry.origin + ": there is no key '" + entry.key + "'" +
                       did_you_mean(entry.key, setting_names(k_all, true), "") +
                       " The keys are the flags of train, evaluate and predict");
    }
    const Given job{scalar(entry), entry.origin + ": " + entry.key, false};
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

std::span<const Setting> setting_table() {
  return k_settings;
}

std::string_view name_of(ModelCommand command) {
  return text_of(command).name;
}

Settings parse_settings(ModelCommand command, std::span<const std::string> arguments) {
  FlagParser parser(command);
  GivenSettings given = parser.parse(arguments);
  Settings settings;
  if (given.contains("config")) add_job_file(command, settings, given);
  check_alternatives(given);
  for (const Setting& row : k_settings) {
    if (parser.takes(row) && given.contains(row.name)) apply(row, given.at(row.name), settings);
  }
  check(command, settings, given);
  return settings;
}

std::vector<std::pair<std::string, std::string>> list_settings(const Settings& settings) {
  std::vector<std::pair<std::string, std::string>> list;
  for (const Setting& row : k_settings) {
    if (&row != find_setting(row.name, k_all)) continue;  // several commands' words for one value
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

std::string settings_help(ModelCommand command) {
  return FlagParser(command).app.help();
}

}  // namespace rankine
