#include "runtime/training/trainer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>

#include "runtime/data/batch_loader.hpp"
#include "runtime/error.hpp"
#include "runtime/mesh/agree.hpp"
#include "runtime/training/evaluation.hpp"
#include "runtime/training/same_inputs.hpp"

namespace rankine {

DataRequest data_request(const Model& model, std::span<const OutputLoss> losses) {
  DataRequest request;
  for (std::size_t i = 0; i < model.input_names().size(); ++i) {
    const auto value = static_cast<std::size_t>(model.graph().inputs[i]);
    request.inputs.push_back({model.input_names()[i], model.graph().values[value].spec});
  }
  const std::vector<ValueSpec> predictions = model.output_specs();
  for (std::size_t o = 0; o < losses.size(); ++o) {
    // Keras calls the only output "y"; people may call it by its layer.
    const int value = model.graph().outputs[o];
    const int producer = model.graph().values[static_cast<std::size_t>(value)].producer;
    const std::string layer =
        producer < 0 ? "" : model.graph().calls[static_cast<std::size_t>(producer)].layer->name();
    request.targets.push_back(
        {losses[o].output, losses[o].loss->target(predictions[o], losses[o].output), layer});
    const std::vector<std::int64_t>& sizes = predictions[o].shape.sizes();
    request.weights.push_back(
        {losses[o].output, {Shape({sizes.begin(), sizes.end() - 1}), predictions[o].dtype}, layer});
  }
  return request;
}

struct Trainer::State {
  Model& model;
  Backend& backend;
  Communicator& data;
  std::unique_ptr<Communicator>
      gradients;  ///< its own, so that reductions in flight don't order other collectives
  Optimizer& optimizer;
  std::vector<OutputLoss> losses;
  std::unique_ptr<Dataset> training, validation;
  TrainOptions options;
  std::optional<BatchPasses> passes;
  BatchSchedule schedule;
  std::unique_ptr<Executor> executor;
  Totals epoch;

  std::int64_t last_step() const {
    return options.steps > 0 ? options.steps : options.epochs * schedule.steps_per_epoch();
  }

  StepReport train_step(const Batch& batch) {
    const auto begin = std::chrono::steady_clock::now();
    const StepPlan plan = passes->plan(batch.place.samples);
    const auto begin_pass = [&](const PlannedPass& pass) {
      optimizer.begin_pass(pass.node, &pass == &plan.passes.back());
    };
    optimizer.begin_step({batch.step, plan.shares});
    const StepSums sums = executor->takes_passes_together()
                              ? passes->train_together(plan, batch, options.seed, *executor, optimizer)
                              : passes->run(plan, batch, options.seed, *executor,
                                            {[&](const PlannedPass& planned, const Pass& pass) {
                                               begin_pass(planned);
                                               return executor->train(pass, optimizer);
                                             },
                                             [&](const PlannedPass& planned) {
                                               begin_pass(planned);
                                               executor->skip(optimizer);
                                             }});

    StepReport report;
    report.step = batch.step;
    report.epoch = batch.place.epoch;
    report.loss = total_loss(losses, sums);
    if (!std::isfinite(report.loss)) throw_not_finite(report, plan, batch);
    const UpdateReport update = optimizer.apply();
    executor->after_update(plan.batch);
    epoch.add(losses, sums, batch.place.samples);
    report.update = update.update;
    report.learning_rate = update.learning_rate;
    report.gradient_norm = update.gradient_norm;
    report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    report.samples_per_second = static_cast<double>(batch.place.samples) / report.seconds;
    return report;
  }

  /// Every rank looks through its passes; the earliest finding, of the first rank that has it, is what all
  /// throw.
  [[noreturn]] void throw_not_finite(const StepReport& report, const StepPlan& plan, const Batch& batch) {
    NonFinite found{std::numeric_limits<std::int64_t>::max(), ""};
    for_each_pass(plan, batch, options.seed, {}, [&](const PlannedPass&, const Pass& pass) {
      NonFinite here = executor->find_non_finite(pass);
      if (here.stage >= 0 && here.stage < found.stage) found = std::move(here);
    });
    // Statistics of the batch spread what isn't finite over all ranks.
    std::vector<std::int64_t> earliest{found.stage};
    data.all_reduce(earliest, ReduceOp::min)->wait();
    if (found.stage != earliest[0]) found.text.clear();
    std::string first = "the loss itself";
    for (const std::string& text : data.all_gather_text(found.text)) {
      if (text.empty()) continue;
      first = text;
      break;
    }
    throw NumericError(
        "step " + std::to_string(report.step) + ": the loss is " +
        (std::isnan(report.loss) ? "not a number" : "infinite") + "; the first value that isn't finite is " +
        first + ". The weights are those of the step before. Check the data, or lower the learning rate " +
        "or clip the gradients (global_clipnorm)");
  }

  /// `loss` is a validation's.
  static void check_validation(double loss, std::int64_t step) {
    if (std::isfinite(loss)) return;
    throw NumericError("after step " + std::to_string(step) + ": the loss over the validation data is " +
                       (std::isnan(loss) ? "not a number" : "infinite") +
                       ", though that of the training data isn't; check the validation data");
  }

  EpochReport end_epoch(const Batch& batch) {
    EpochReport report;
    report.epoch = batch.place.epoch;
    report.step = batch.step;
    report.values = epoch.values(losses);
    if (validation) {
      const Totals totals = evaluate(*executor, *passes, *validation, options.batch);
      for (const auto& [name, value] : totals.values(losses)) report.values["val_" + name] = value;
      check_validation(report.values["val_loss"], batch.step);
    }
    epoch = {};
    return report;
  }
};

Trainer::Trainer(Model& model, Backend& backend, Communicator& data, Optimizer& optimizer,
                 std::vector<OutputLoss> losses, std::unique_ptr<Dataset> training,
                 std::unique_ptr<Dataset> validation, const TrainOptions& options)
    : state_(std::make_unique<State>(State{model, backend, data, nullptr, optimizer, std::move(losses),
                                           std::move(training), std::move(validation), options})) {
  State& s = *state_;
  Dataset* const datasets[] = {s.training.get(), s.validation.get()};
  check_same_inputs(data, model, datasets);
  s.gradients = data.split(0, data.rank(), "gradients");
  agree(data, [&] {
    if (options.batch < 1) throw UsageError("--batch must be at least 1");
    if (options.accumulate < 1) throw UsageError("--accumulate must be at least 1");
    s.passes.emplace(data, samples_per_leaf(options.batch, model.rows_per_sample()), options.accumulate);
    s.schedule = {s.training->samples(), options.batch};
    const std::int64_t most =
        std::max(s.passes->largest_pass(s.training->samples(), options.batch),
                 s.validation ? s.passes->largest_pass(s.validation->samples(), options.batch) : 0);
    s.executor = std::make_unique<Executor>(model, backend, s.losses, std::max<std::int64_t>(most, 1), true,
                                            s.passes->most_passes(s.training->samples(), options.batch));
  });
  for (const std::int64_t samples : {s.options.batch, s.training->samples() % s.options.batch}) {
    const StepPlan plan = s.passes->plan(std::min(samples, s.training->samples()));
    std::vector<Node> nodes;
    for (const PlannedPass& pass : plan.passes) nodes.push_back(pass.node);
    optimizer.expect_passes(nodes, plan.shares.leaves);
  }
  optimizer.attach(model.variables(), s.executor->gradient_uses(), *s.gradients, backend);
}

Trainer::~Trainer() = default;

std::int64_t Trainer::steps_planned() const {
  return state_->last_step();
}
std::size_t Trainer::pool_bytes() const {
  return state_->executor->pool_bytes();
}

void Trainer::run(std::span<Callback* const> callbacks) {
  State& s = *state_;
  const SampleOrder order(s.training->samples(), s.options.seed, s.options.shuffle);
  BatchLoader loader(BatchReader(*s.training, order, s.options.batch, s.passes->share()), 1, s.last_step());
  for (Callback* callback : callbacks) callback->on_train_begin();
  bool stop = false;
  for (std::int64_t step = 1; step <= s.last_step() && !stop; ++step) {
    const Batch* batch = nullptr;
    agree(s.data, [&] { batch = &loader.next(); });
    const StepReport report = s.train_step(*batch);
    for (Callback* callback : callbacks) callback->on_step_end(report, stop);
    if (!batch->place.ends_epoch && step != s.last_step()) continue;
    const EpochReport epoch = s.end_epoch(*batch);
    for (Callback* callback : callbacks) callback->on_epoch_end(epoch, stop);
  }
  for (Callback* callback : callbacks) callback->on_train_end();
}

}  // namespace rankine
