#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/error.hpp"
#include "runtime/mesh/agree.hpp"
#include "runtime/mesh/launch_info.hpp"
#include "runtime/model/known_words.hpp"
#include "tools/rankine/command.hpp"
#include "tools/rankine/flag_parser.hpp"

namespace rankine {
namespace {

/// One row of the table of commands. Exactly one of the two functions is there.
struct Command {
  std::string_view name;
  std::string_view summary;
  void (*on_ranks)(World& world, Arguments arguments);
  void (*alone)(Arguments arguments);
  std::string (*help)();
};

constexpr std::array k_commands{
    Command{"train", "train a Keras model on the ranks that mpirun or srun started", run_train, nullptr,
            [] { return settings_help(ModelCommand::train); }},
    Command{"evaluate", "print the loss and the metrics of a model over a dataset", run_evaluate, nullptr,
            [] { return settings_help(ModelCommand::evaluate); }},
    Command{"predict", "write a model's outputs for a dataset into an HDF5 file", run_predict, nullptr,
            [] { return settings_help(ModelCommand::predict); }},
    Command{"doctor", "show where the ranks are, and what would be slow or go wrong", run_doctor, nullptr,
            doctor_help},
    Command{"inspect", "show what a Keras file holds: model, weights, optimizer", nullptr, run_inspect,
            inspect_help},
};

std::string program_help() {
  std::string text =
      "Rankine trains Keras 3 models across MPI ranks, with the same bits on any number of "
      "them.\n\nCommands:\n";
  for (const Command& command : k_commands) {
    text += "  rankine " + std::string(command.name) + std::string(10 - command.name.size(), ' ') +
            std::string(command.summary) + "\n";
  }
  return text +
         "  rankine COMMAND --help   the command's flags, with examples\n"
         "  rankine --version        versions of Rankine, MPI and HDF5\n\n"
         "Example:\n"
         "  mpirun -n 2 rankine train --model model.keras --data train.h5 --batch 64 --epochs 3 --output "
         "trained.keras\n\n"
         "Exit codes: 0 done, 2 usage, 3 model, data or configuration refused, 4 weights file missing or "
         "damaged,\n"
         "70 a rank hung or died.\n";
}

const Command* find_command(std::string_view name) {
  const auto found = std::find_if(k_commands.begin(), k_commands.end(),
                                  [&](const Command& row) { return row.name == name; });
  return found == k_commands.end() ? nullptr : &*found;
}

[[noreturn]] void refuse_command(const std::string& name) {
  std::vector<std::string> names;
  for (const Command& row : k_commands) names.emplace_back(row.name);
  throw UsageError("there is no command '" + name + "'" + did_you_mean(name, names) +
                   " Commands: " + listed(names) + ". See rankine --help");
}

/// What needs no ranks is answered before MPI is touched. True when there was such a thing.
bool answer_help(const std::vector<std::string>& arguments) {
  const auto has = [&](std::string_view flag) {
    return std::find(arguments.begin(), arguments.end(), flag) != arguments.end();
  };
  const Command* command = arguments.empty() ? nullptr : find_command(arguments.front());
  std::string text;
  if (has("--help") || has("-h")) {
    text = command == nullptr ? program_help() : command->help();
  } else if (!arguments.empty() && arguments.front() == "--version") {
    text = version_text();
  }
  std::fputs(text.c_str(), stdout);
  return !text.empty();
}

int report_failure(const std::exception& error) {
  std::fflush(stdout);
  std::fprintf(stderr, "rankine: %s\n", error.what());
  const auto* known = dynamic_cast<const Error*>(&error);
  return static_cast<int>(known == nullptr ? ExitCode::rank_failed : known->exit_code());
}

int run_alone(const Command& command, const std::vector<std::string>& arguments) {
  try {
    command.alone(Arguments(arguments).subspan(1));
    return static_cast<int>(ExitCode::done);
  } catch (const std::exception& error) {
    return report_failure(error);
  }
}

int run_on_ranks(const Command* command, const std::vector<std::string>& arguments, World& world) {
  return run_ranks(world, [&] {
    check_launch(read_launch_info(), world.size());
    if (command == nullptr) refuse_command(arguments.front());
    command->on_ranks(world, Arguments(arguments).subspan(1));
    return static_cast<int>(ExitCode::done);
  });
}

int run_program(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) {
    std::fputs(program_help().c_str(), stderr);
    return static_cast<int>(ExitCode::usage);
  }
  if (answer_help(arguments)) return static_cast<int>(ExitCode::done);
  const Command* command = find_command(arguments.front());
  if (command != nullptr && command->alone != nullptr) return run_alone(*command, arguments);
  try {
    World world(&argc, &argv);
    return run_on_ranks(command, arguments, world);
  } catch (const std::exception& error) {
    return report_failure(error);
  }
}

}  // namespace
}  // namespace rankine

int main(int argc, char** argv) {
  return rankine::run_program(argc, argv);
}
