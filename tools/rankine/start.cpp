#include "tools/rankine/start.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "checkpoint/weights_reader.hpp"
#include "runtime/data/hdf5_dataset.hpp"
#include "runtime/data/window_dataset.hpp"
#include "runtime/error.hpp"
#include "tools/rankine/agreed.hpp"
#include "tools/rankine/output_check.hpp"
#include "tools/rankine/rank_cores.hpp"

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

void check_outputs(ModelCommand command, const Settings& settings) {
  const std::vector<std::pair<std::string, std::string>> files{
      {"--model", settings.model},   {"--weights", settings.weights},
      {"--data", settings.data},     {"--init-from", settings.init_from},
      {"--text", settings.text},     {"--tokens", settings.tokens},
      {"--config", settings.config}, {"--validation-data", settings.validation_data},
      {"--output", settings.output}, {"--vocabulary", settings.vocabulary}};
  // A model may be trained in its own file: it is read first, and replaced as a whole.
  const auto apart_from = [&](const std::string& flag) {
    std::vector<std::pair<std::string, std::string>> others = files;
    if (flag == "--output" && command == ModelCommand::train)
      std::erase_if(others,
                    [](const auto& file) { return file.first == "--model" || file.first == "--weights"; });
    return others;
  };
  if (!settings.output.empty()) {
    check_apart("--output", settings.output, apart_from("--output"));
    if (command == ModelCommand::train) check_output_name(settings.output);
    check_can_write("--output", settings.output);
  }
  if (!settings.log.empty()) {
    check_apart("--log", settings.log, apart_from("--log"));
    check_can_write("--log", settings.log);
  }
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
  const std::vector<int> cores = allowed_cores();
  std::string mask = std::to_string(world.nodes().node[static_cast<std::size_t>(world.rank())]) + ":";
  for (const int core : cores) mask += std::to_string(core) + ",";
  const std::vector<std::string> masks = world.communicator().all_gather_text(mask);
  const auto sharers = static_cast<int>(std::count(masks.begin(), masks.end(), mask));
  return std::max(1, static_cast<int>(cores.size()) / sharers);
}

std::unique_ptr<Backend> make_backend(const Settings& settings, int threads) {
  const InstructionSet set =
      settings.isa == "best" ? best_instruction_set() : instruction_set_from_name(settings.isa);
  return make_cpu_backend(settings.threads > 0 ? static_cast<int>(settings.threads) : threads, set);
}

std::string describe(const std::string& path, const Model& model) {
  std::int64_t parameters = 0;
  for (const Variable& variable : model.variables()) parameters += variable.shape.elements();
  return "'" + path + "': " + std::to_string(parameters) + " parameters";
}

}  // namespace

Start start(World& world, ModelCommand command, Arguments arguments) {
  Communicator& ranks = world.communicator();
  Settings settings = agreed(ranks, [&] { return parse_settings(command, arguments); });
  check_same_settings(ranks, settings);
  agree(ranks, [&] {
    if (world.rank() == 0) check_outputs(command, settings);
  });
  Mesh mesh(ranks, agreed(ranks, [&] { return mesh_shape(settings, world.size()); }));
  const int threads = thread_share(world);
  auto backend = agreed(ranks, [&] { return make_backend(settings, threads); });
  return {std::move(settings), std::move(mesh), std::move(backend)};
}

LoadedModel load_model_of(const Start& start, ModelCommand command) {
  const Settings& settings = start.settings;
  LoadedModel loaded = load_model(settings.model);
  const std::string& weights = settings.init_from.empty() ? settings.weights : settings.init_from;
  if (!weights.empty()) loaded.weights = WeightsFile::open(weights);
  loaded.model.allocate(*start.backend);
  if (loaded.weights) {
    read_weights(*loaded.weights, loaded.model.variables());
  } else if (command == ModelCommand::train) {
    loaded.model.initialize(static_cast<std::uint64_t>(settings.seed));
  } else {
    throw ConfigError("'" + settings.model + "' has no weights to " + std::string(name_of(command)) +
                      " with: give them with --weights");
  }
  return loaded;
}

Data open_data(const Settings& settings, const DataRequest& request) {
  const WindowOptions windows{settings.arange_inputs};
  const std::string& vocabulary_text = settings.vocabulary.empty() ? settings.text : settings.vocabulary;
  const std::string vocabulary = settings.text.empty() ? "" : text_vocabulary(vocabulary_text);
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

Facts facts_of(const Start& start, const Model& model, const Data& data) {
  Facts facts{{"version", version_line()},
              {"mesh", start.mesh.shape().to_string()},
              {"device", start.backend->description()},
              {"model", describe(start.settings.model, model)},
              {"data", data.training->description()}};
  if (data.validation) facts.emplace_back("validation", data.validation->description());
  return facts;
}

void print_facts(const Facts& facts) {
  for (const auto& [word, text] : facts) std::printf("%-10s %s\n", word.c_str(), text.c_str());
  std::fflush(stdout);
}

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

}  // namespace rankine
