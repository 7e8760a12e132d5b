#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "checkpoint/keras_model.hpp"
#include "checkpoint/weights_reader.hpp"
#include "optimizer/make_optimizer.hpp"
#include "runtime/data/hdf5_dataset.hpp"
#include "runtime/data/window_dataset.hpp"
#include "runtime/error.hpp"
#include "runtime/mesh/mesh.hpp"
#include "runtime/training/json_log.hpp"
#include "runtime/training/progress.hpp"
#include "runtime/training/trainer.hpp"
#include "tools/rankine/agreed.hpp"
#include "tools/rankine/command.hpp"
#include "tools/rankine/compile_settings.hpp"
#include "tools/rankine/output_check.hpp"
#include "tools/rankine/settings.hpp"

namespace rankine {
namespace {

/// Ranks that were started with other arguments, or read another job file, would train something else.
void check_same_settings(Communicator& ranks, const Settings& settings) {
  const auto list = list_settings(settings);
  const std::map<std::string, std::string> mine(list.begin(), list.end());
  const auto all = ranks.all_gather_text(nlohmann::json(mine).dump());
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    const auto theirs = nlohmann::json::parse(all[rank]).get<std::map<std::string, std::string>>();
    const auto first = nlohmann::json::parse(all[0]).get<std::map<std::string, std::string>>();
    const auto differs = std::mismatch(theirs.begin(), theirs.end(), first.begin(), first.end());
    const auto text = [](auto at, const auto& map) {
      return at == map.end() ? "nothing there" : at->first + " = " + at->second;
    };
    throw UsageError("rank " + std::to_string(rank) + " has " + text(differs.first, theirs) +
                     ", but rank 0 has " + text(differs.second, first) +
                     ": start all ranks with the same arguments and job file");
  }
}

void check_outputs(const Settings& settings) {
  if (!settings.output.empty()) {
    check_output_name(settings.output);
    check_can_write("--output", settings.output);
  }
  if (!settings.log.empty()) check_can_write("--log", settings.log);
}

MeshShape mesh_shape(const Settings& settings, int ranks) {
  if (settings.mesh == "auto") return {ranks, 1};
  const MeshShape shape = MeshShape::parse(settings.mesh);
  if (shape.tensor > 1) {
    throw ConfigError("--mesh " + settings.mesh +
                      ": splitting weights over the axis `tensor` isn't supported yet; "
                      "use data=" +
                      std::to_string(ranks));
  }
  return shape;
}

/// This rank's share of the cores that it may run on: those ranks of its node share them that may use the
/// same.
int thread_share(World& world) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof(cores), &cores) != 0) return 1;
  std::string mask = std::to_string(world.nodes().node[static_cast<std::size_t>(world.rank())]) + ":";
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &cores)) mask += std::to_string(core) + ",";
  }
  const std::vector<std::string> masks = world.communicator().all_gather_text(mask);
  const auto sharers = static_cast<int>(std::count(masks.begin(), masks.end(), mask));
  return std::max(1, CPU_COUNT(&cores) / sharers);
}

std::unique_ptr<Backend> make_backend(const Settings& settings, int threads) {
  const InstructionSet set =
      settings.isa == "best" ? best_instruction_set() : instruction_set_from_name(settings.isa);
  return make_cpu_backend(settings.threads > 0 ? static_cast<int>(settings.threads) : threads, set);
}

/// A model ready to train: compiled, with memory and first values, and what it wants of data.
struct ReadyModel {
  Model model;
  std::optional<WeightsFile> weights;  ///< where the values came from
  CompileSettings compile;
  std::vector<OutputLoss> losses;
  DataRequest request;
};

ReadyModel load(const Settings& settings, Backend& backend) {
  LoadedModel loaded = load_model(settings.model);
  Model& model = loaded.model;
  const CompileSettings compile = compile_settings(model.compile_config(), settings.compile);
  model.set_compile_config(compile.config);
  std::vector<OutputLoss> losses = losses_from_compile_config(nlohmann::json::parse(compile.config),
                                                              model.output_names(), model.output_specs());
  if (!settings.weights.empty()) loaded.weights = WeightsFile::open(settings.weights);
  model.allocate(backend);
  if (loaded.weights) {
    read_weights(*loaded.weights, model.variables());
  } else {
    model.initialize(static_cast<std::uint64_t>(settings.seed));
  }
  DataRequest request = data_request(model, losses);
  return {std::move(model), std::move(loaded.weights), compile, std::move(losses), std::move(request)};
}

/// Training and validation data are of one kind; a text's ids are those of the training text in both.
struct Data {
  std::unique_ptr<Dataset> training;
  std::unique_ptr<Dataset> validation;
};

Data open_data(const Settings& settings, const DataRequest& request) {
  const WindowOptions windows{settings.arange_inputs};
  const std::string vocabulary = settings.text.empty() ? "" : text_vocabulary(settings.text);
  const auto open = [&](const std::string& path) -> std::unique_ptr<Dataset> {
    if (!settings.text.empty()) return open_text_dataset(path, vocabulary, request, windows);
    if (!settings.tokens.empty()) {
      return open_token_dataset(path, static_cast<int>(settings.token_bytes), request, windows);
    }
    return open_hdf5_dataset(path, request);
  };
  const std::string& training = !settings.text.empty()     ? settings.text
                                : !settings.tokens.empty() ? settings.tokens
                                                           : settings.data;
  return {open(training), settings.validation_data.empty() ? nullptr : open(settings.validation_data)};
}

/// Reads the optimizer's state that came with the weights. What became of it, for people.
std::string restore_optimizer(const ReadyModel& ready, Optimizer& optimizer) {
  if (!ready.weights) return "new";
  if (!ready.compile.keeps_optimizer) return "new, since the job file changes it";
  StateDict state = optimizer.state();
  if (read_optimizer_state(*ready.weights, state) != OptimizerRead::complete) return "new";
  optimizer.state_changed();
  return "goes on from the state in " + ready.weights->name();
}

TrainOptions train_options(const Settings& settings) {
  TrainOptions options;
  options.batch = settings.batch;
  options.epochs = settings.epochs;
  options.steps = settings.steps;
  options.seed = static_cast<std::uint64_t>(settings.seed);
  options.shuffle = !settings.no_shuffle;
  options.accumulate = static_cast<int>(settings.accumulate);
  return options;
}

std::string describe(const std::string& path, const Model& model) {
  std::int64_t parameters = 0;
  for (const Variable& variable : model.variables()) parameters += variable.shape.elements();
  return "'" + path + "': " + std::to_string(parameters) + " parameters";
}

/// What is about to happen, for people and for the log's first line: a word, and text.
using Facts = std::vector<std::pair<std::string, std::string>>;

void print_facts(const Facts& facts) {
  for (const auto& [word, text] : facts) std::printf("%-10s %s\n", word.c_str(), text.c_str());
  std::fflush(stdout);
}

/// Values are JSON.
Facts log_start(const Facts& facts, const Settings& settings, int ranks) {
  Facts start;
  for (const auto& [word, text] : facts) start.emplace_back(word, nlohmann::json(text).dump());
  start.emplace_back("versions", nlohmann::json(version_text()).dump());
  start.emplace_back("ranks", std::to_string(ranks));
  auto table = nlohmann::json::object();
  for (const auto& [name, value] : list_settings(settings)) table[name] = value;
  start.emplace_back("settings", table.dump());
  return start;
}

/// What rank 0 shows while training goes on.
class Watchers {
 public:
  Watchers(const Settings& settings, const Facts& facts, int ranks, std::int64_t steps) {
    if (!settings.quiet) {
      print_facts(facts);
      callbacks_.push_back(&progress_.emplace(steps));
    }
    if (!settings.log.empty()) {
      callbacks_.push_back(&log_.emplace(settings.log, log_start(facts, settings, ranks)));
    }
  }
  Watchers(const Watchers&) = delete;
  Watchers& operator=(const Watchers&) = delete;
  std::span<Callback* const> callbacks() const { return callbacks_; }

 private:
  std::optional<Progress> progress_;
  std::optional<JsonLog> log_;
  std::vector<Callback*> callbacks_;
};

std::unique_ptr<Optimizer> optimizer_of(const Settings& settings, const std::string& compile_config) {
  OptimizerOptions options;
  options.bucket_bytes = settings.bucket_bytes;
  options.first_bucket_bytes = std::min(options.first_bucket_bytes, options.bucket_bytes);
  return make_optimizer(compile_config, options);
}

void write_output(const Settings& settings, const Model& model, Optimizer& optimizer) {
  if (settings.output.empty()) return;
  write_model(settings.output, model, optimizer.state());
  if (!settings.quiet) std::printf("wrote '%s'\n", settings.output.c_str());
}

}  // namespace

void run_train(World& world, Arguments arguments) {
  Communicator& ranks = world.communicator();
  const bool speaks = world.rank() == 0;
  const Settings settings = agreed(ranks, [&] { return parse_settings(arguments); });
  check_same_settings(ranks, settings);
  agree(ranks, [&] {
    if (speaks) check_outputs(settings);
  });

  Mesh mesh(ranks, agreed(ranks, [&] { return mesh_shape(settings, world.size()); }));
  const int threads = thread_share(world);
  const auto backend = agreed(ranks, [&] { return make_backend(settings, threads); });
  ReadyModel ready = agreed(ranks, [&] { return load(settings, *backend); });
  const auto optimizer = agreed(ranks, [&] { return optimizer_of(settings, ready.compile.config); });
  Data data = agreed(ranks, [&] { return open_data(settings, ready.request); });
  Facts facts{{"version", version_line()},
              {"mesh", mesh.shape().to_string()},
              {"device", backend->description()},
              {"model", describe(settings.model, ready.model)},
              {"data", data.training->description()}};
  if (data.validation) facts.emplace_back("validation", data.validation->description());

  Trainer trainer(ready.model, *backend, mesh.data(), *optimizer, std::move(ready.losses),
                  std::move(data.training), std::move(data.validation), train_options(settings));
  const std::string restored = agreed(ranks, [&] { return restore_optimizer(ready, *optimizer); });
  facts.emplace_back("optimizer", std::string(optimizer->name()) + ", " + restored);
  ready.weights.reset();

  std::optional<Watchers> watchers;
  agree(ranks, [&] {
    if (speaks) watchers.emplace(settings, facts, world.size(), trainer.steps_planned());
  });
  trainer.run(watchers ? watchers->callbacks() : std::span<Callback* const>());
  agree(ranks, [&] {
    if (speaks) write_output(settings, ready.model, *optimizer);
  });
}

}  // namespace rankine
