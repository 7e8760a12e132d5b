#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/error.hpp"
#include "runtime/training/evaluation.hpp"
#include "runtime/training/json_log.hpp"
#include "runtime/training/same_inputs.hpp"
#include "runtime/training/trainer.hpp"
#include "tools/rankine/agreed.hpp"
#include "tools/rankine/compile_settings.hpp"
#include "tools/rankine/start.hpp"

namespace rankine {
namespace {

/// One line a value, loss first.
void print_values(const std::map<std::string, double>& values) {
  std::printf("%-24s %.9g\n", "loss", values.at("loss"));
  for (const auto& [name, value] : values) {
    if (name != "loss") std::printf("%-24s %.9g\n", name.c_str(), value);
  }
}

void log_values(const std::string& path, const std::map<std::string, double>& values) {
  std::string line = R"({"event":"evaluate")";
  for (const auto& [name, value] : values)
    line += "," + nlohmann::json(name).dump() + ":" + exact_json_number(value);
  std::ofstream file(path, std::ios::app);
  file << line << "}\n";
  file.flush();
  if (!file) throw ConfigError("--log: can't write '" + path + "'");
}

}  // namespace

void run_evaluate(World& world, Arguments arguments) {
  Communicator& ranks = world.communicator();
  Start start = rankine::start(world, ModelCommand::evaluate, arguments);
  const Settings& settings = start.settings;
  std::vector<OutputLoss> losses;
  const LoadedModel loaded = agreed(ranks, [&] {
    LoadedModel loaded = load_model_of(start, ModelCommand::evaluate);
    Model& model = loaded.model;
    model.set_compile_config(
        compile_settings(model.compile_config(), settings.compile, ModelCommand::evaluate).config);
    losses = compiled_losses(model);
    return loaded;
  });
  const Model& model = loaded.model;
  const Data data = agreed(ranks, [&] { return open_data(settings, data_request(model, losses)); });
  Dataset& dataset = *data.training;
  Dataset* const datasets[] = {&dataset};
  check_same_inputs(start.mesh.data(), model, datasets);
  if (world.rank() == 0 && !settings.quiet) print_facts(facts_of(start, model, data));

  const BatchPasses passes(start.mesh.data(), samples_per_leaf(settings.batch, model.rows_per_sample()),
                           static_cast<int>(settings.accumulate));
  const auto executor = agreed(ranks, [&] {
    const std::int64_t most =
        std::max<std::int64_t>(passes.largest_pass(dataset.samples(), settings.batch), 1);
    return std::make_unique<Executor>(model, *start.backend, losses, most, false);
  });
  const auto values = evaluate(*executor, passes, dataset, settings.batch).values(losses);
  agree(ranks, [&] {
    if (world.rank() != 0) return;
    print_values(values);
    if (!settings.log.empty()) log_values(settings.log, values);
  });
  if (!std::isfinite(values.at("loss")))
    throw NumericError("the loss is not a finite number: check the data and the weights");
}

}  // namespace rankine
