#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rankine {

/// What `[compile]` of a job file says about one key: JSON text, made from what stands there.
using CompileOverrides = std::map<std::string, std::string>;

/// The commands that work with a model on ranks. They are bits, so that a setting can name several.
enum class ModelCommand : unsigned { train = 1, evaluate = 2, predict = 4 };
std::string_view name_of(ModelCommand command);

/// Everything that a person may set, by flag or in the job file.
struct Settings {
  std::string model;
  std::string weights;
  std::string init_from;
  std::string data;
  std::string text;
  std::string tokens;
  std::string vocabulary;
  std::int64_t token_bytes = 2;
  std::string validation_data;

  std::int64_t batch = 32;
  std::int64_t epochs = 1;
  std::int64_t steps = 0;  ///< 0: by epochs
  std::int64_t seed = 0;
  bool no_shuffle = false;

  std::string mesh = "auto";
  std::int64_t accumulate = 1;
  std::int64_t threads = 0;  ///< 0: this rank's share of its cores
  std::int64_t bucket_bytes = std::int64_t{4} << 20;
  std::string isa = "best";

  std::string output;
  bool dry_run = false;
  std::string log;
  bool quiet = false;
  std::string config;

  std::vector<std::string> arange_inputs;  ///< [inputs] name = "arange"
  CompileOverrides compile;                ///< [compile]
};

/// From the arguments after the command's name, and the job file that they name; a flag wins over the job
/// file. One job file serves all commands: keys that this one doesn't take are checked and left. Throws
/// UsageError.
Settings parse_settings(ModelCommand command, std::span<const std::string> arguments);

/// Every setting with its value as text, those of the job file's sections as "[compile] loss".
std::vector<std::pair<std::string, std::string>> list_settings(const Settings& settings);

}  // namespace rankine
