#include "tools/rankine/setting_table.hpp"

#include <algorithm>
#include <array>

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
constexpr unsigned k_train = bit(ModelCommand::train), k_evaluate = bit(ModelCommand::evaluate),
                   k_predict = bit(ModelCommand::predict), k_all = k_all_commands;

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
            "in place of --data, for a language model: text; the ids are the places of its bytes in the "
            "sorted set of them"},
    Setting{"vocabulary", "FILE", k_model_and_data, k_train | k_evaluate, &Settings::vocabulary,
            "with --text: take the ids of this text's bytes, the one that a model was first trained on"},
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

}  // namespace

std::span<const Setting> setting_table() {
  return k_settings;
}

const CommandText& text_of(ModelCommand command) {
  return *std::find_if(k_commands.begin(), k_commands.end(),
                       [&](const CommandText& row) { return row.command == command; });
}

const Setting* find_setting(std::string_view name, unsigned commands) {
  const auto found = std::find_if(k_settings.begin(), k_settings.end(), [&](const Setting& row) {
    return row.name == name && (row.commands & commands) != 0;
  });
  return found == k_settings.end() ? nullptr : &*found;
}

std::vector<std::string> setting_names(unsigned commands) {
  std::vector<std::string> names;
  for (const Setting& row : k_settings) {
    if ((row.commands & commands) != 0) names.emplace_back(row.name);
  }
  return names;
}

bool is_switch(const Setting& row) {
  return std::holds_alternative<bool Settings::*>(row.target);
}

std::string_view name_of(ModelCommand command) {
  return text_of(command).name;
}

}  // namespace rankine
