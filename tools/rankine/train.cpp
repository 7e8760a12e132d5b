#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "checkpoint/weights_reader.hpp"
#include "optimizer/make_optimizer.hpp"
#include "runtime/training/json_log.hpp"
#include "runtime/training/progress.hpp"
#include "runtime/training/trainer.hpp"
#include "tools/rankine/agreed.hpp"
#include "tools/rankine/compile_settings.hpp"
#include "tools/rankine/start.hpp"

namespace rankine {
namespace {

/// Reads the optimizer's state that came with the weights. What became of it, for people.
std::string restore_optimizer(const LoadedModel& loaded, const Settings& settings, bool is_changed,
                              Optimizer& optimizer) {
  if (!loaded.weights || !settings.init_from.empty()) return "new";
  if (is_changed) return "new, since the job file changes it";
  StateDict state = optimizer.state();
  if (read_optimizer_state(*loaded.weights, state) != OptimizerRead::complete) return "new";
  optimizer.state_changed();
  return "goes on from the state in " + loaded.weights->name();
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

/// What rank 0 shows while training goes on.
class Watchers {
 public:
  Watchers(const Settings& settings, const Facts& facts, int ranks, std::int64_t steps) {
    if (!settings.quiet) {
      print_facts(facts);
      callbacks_.push_back(&progress_.emplace(steps));
    }
    if (!settings.log.empty() && !settings.dry_run) {
      callbacks_.push_back(&log_.emplace(settings.log, log_start(facts, settings, ranks)));
    }
  }
  Watchers(const Watchers&) = delete;
  Watchers& operator=(const Watchers&) = delete;
  const std::vector<Callback*>& callbacks() const { return callbacks_; }

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

/// Ends training after the second step, and keeps how long that took.
class DryRun : public Callback {
 public:
  void on_step_end(const StepReport& report, bool& stop) override {
    seconds_ = report.seconds;
    stop = stop || report.step >= 2;
  }
  /// For people: what the whole run would take.
  std::string summary(std::int64_t steps) const {
    char text[160];
    std::snprintf(text, sizeof text,
                  "dry run: the last step took %.3g s; all %lld steps would take about %.3g s", seconds_,
                  static_cast<long long>(steps), seconds_ * static_cast<double>(steps));
    return text;
  }

 private:
  double seconds_ = 0.0;
};

/// Saves beside the real output's place, which stays as it is.
std::string dry_save(const Settings& settings, const Model& model, Optimizer& optimizer) {
  namespace fs = std::filesystem;
  if (settings.output.empty()) return "; nothing was saved, since there is no --output";
  const fs::path output = settings.output;
  const fs::path probe = output.parent_path() / ("dry-run-" + output.filename().string());
  const auto begin = std::chrono::steady_clock::now();
  write_model(probe.string(), model, optimizer.state());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto bytes = static_cast<double>(fs::file_size(probe));
  fs::remove(probe);
  char text[160];
  std::snprintf(text, sizeof text, "; saved %.3g MB in %.3g s and removed them again", bytes * 1e-6, seconds);
  return text;
}

}  // namespace

void run_train(World& world, Arguments arguments) {
  Communicator& ranks = world.communicator();
  const bool speaks = world.rank() == 0;
  Start start = rankine::start(world, ModelCommand::train, arguments);
  const Settings& settings = start.settings;

  CompileSettings compile;
  std::vector<OutputLoss> losses;
  LoadedModel loaded = agreed(ranks, [&] {
    LoadedModel loaded = load_model_of(start, ModelCommand::train);
    compile = compile_settings(loaded.model.compile_config(), settings.compile, ModelCommand::train);
    loaded.model.set_compile_config(compile.config);
    losses = compiled_losses(loaded.model);
    return loaded;
  });
  Model& model = loaded.model;
  const auto optimizer = agreed(ranks, [&] { return optimizer_of(settings, compile.config); });
  Data data = agreed(ranks, [&] { return open_data(settings, data_request(model, losses)); });
  Facts facts = facts_of(start, model, data);

  Trainer trainer(model, *start.backend, start.mesh.data(), *optimizer, std::move(losses),
                  std::move(data.training), std::move(data.validation), train_options(settings));
  const std::string restored = agreed(
      ranks, [&] { return restore_optimizer(loaded, settings, !compile.keeps_optimizer, *optimizer); });
  facts.emplace_back("optimizer", std::string(optimizer->name()) + ", " + restored);
  loaded.weights.reset();

  std::optional<Watchers> watchers;
  agree(ranks, [&] {
    if (speaks) watchers.emplace(settings, facts, world.size(), trainer.steps_planned());
  });
  std::vector<Callback*> callbacks;
  if (watchers) callbacks = watchers->callbacks();
  DryRun dry_run;
  if (settings.dry_run) callbacks.push_back(&dry_run);
  trainer.run(callbacks);
  agree(ranks, [&] {
    if (!speaks) return;
    if (settings.dry_run) {
      const std::string saved = dry_save(settings, model, *optimizer);
      std::printf("%s%s\n", dry_run.summary(trainer.steps_planned()).c_str(), saved.c_str());
    } else {
      write_output(settings, model, *optimizer);
    }
  });
}

}  // namespace rankine
