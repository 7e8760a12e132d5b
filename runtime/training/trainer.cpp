#include "runtime/training/trainer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>

#include "runtime/data/batch_loader.hpp"
#include "runtime/error.hpp"
#include "runtime/mesh/agree.hpp"
#include "runtime/training/executor.hpp"
#include "runtime/training/step_plan.hpp"
#include "runtime/training/step_sums.hpp"

namespace rankine {
namespace {

std::size_t metric_count(std::span<const OutputLoss> losses) {
  std::size_t count = 0;
  for (const OutputLoss& loss : losses) count += loss.metrics.size();
  return count;
}

std::vector<Tensor> rows_of(std::span<const Tensor> tensors, Range rows) {
  std::vector<Tensor> part;
  for (const Tensor& tensor : tensors) part.push_back(tensor.rows(rows.begin, rows.end));
  return part;
}

/// Losses and hits of many batches, as Keras reports them for an epoch.
struct Totals {
  std::vector<double> losses;
  std::vector<std::int64_t> hits;
  std::int64_t samples = 0;

  void add(const StepSums& sums, std::int64_t batch_samples) {
    losses.resize(sums.losses().size(), 0.0);
    hits.resize(sums.hits().size(), 0);
    for (std::size_t i = 0; i < losses.size(); ++i) losses[i] += sums.losses()[i];
    for (std::size_t i = 0; i < hits.size(); ++i) hits[i] += sums.hits()[i];
    samples += batch_samples;
  }
};

}  // namespace

DataRequest data_request(const Model& model, std::span<const OutputLoss> losses) {
  DataRequest request;
  for (std::size_t i = 0; i < model.input_names().size(); ++i) {
    const auto value = static_cast<std::size_t>(model.graph().inputs[i]);
    request.inputs.push_back({model.input_names()[i], model.graph().values[value].spec});
  }
  const std::vector<ValueSpec> predictions = model.output_specs();
  for (std::size_t o = 0; o < losses.size(); ++o) {
    request.targets.push_back({losses[o].output, losses[o].loss->target(predictions[o], losses[o].output)});
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
  std::vector<ValueSpec> predictions;
  std::int64_t samples_per_leaf = 1;
  BatchSchedule schedule;
  std::unique_ptr<Executor> executor;
  Totals epoch;

  StepPlan plan(std::int64_t samples) const {
    return plan_step(samples, samples_per_leaf, data.size(), data.rank(), options.accumulate);
  }
  BatchShare share() const {
    return [this](std::int64_t samples) { return std::vector<Range>{plan(samples).samples()}; };
  }
  std::int64_t last_step() const {
    return options.steps > 0 ? options.steps : options.epochs * schedule.steps_per_epoch();
  }
  std::int64_t largest_pass(std::int64_t samples) const {
    const std::int64_t rest = samples % options.batch;
    const std::int64_t whole = samples >= options.batch ? plan(options.batch).largest_pass() : 0;
    return std::max(whole, rest > 0 ? plan(rest).largest_pass() : 0);
  }

  /// Runs `work` on each of this rank's passes of a batch and combines the sums of all ranks. An error of one
  /// rank is thrown on all, after every rank has issued the same collectives.
  template <class Work, class Skip>
  StepSums run_passes(const StepPlan& plan, const Batch& batch, const Work& work, const Skip& skip) {
    StepSums sums(plan, losses.size(), metric_count(losses));
    std::exception_ptr failure;
    for (const PlannedPass& planned : plan.passes) {
      if (failure) {
        skip(planned);
        continue;
      }
      try {
        const Range rows{planned.samples.begin - plan.samples().begin,
                         planned.samples.end - plan.samples().begin};
        const std::vector<Tensor> inputs = rows_of(batch.inputs, rows),
                                  targets = rows_of(batch.targets, rows);
        sums.add(planned,
                 work(planned, Pass{batch.step, options.seed, plan.batch, planned.samples, inputs, targets}));
      } catch (...) {
        failure = std::current_exception();
      }
    }
    agree(data, [&] {
      if (failure) std::rethrow_exception(failure);
    });
    sums.reduce(data);
    return sums;
  }

  StepReport train_step(const Batch& batch) {
    const auto begin = std::chrono::steady_clock::now();
    const StepPlan plan = this->plan(batch.place.samples);
    const auto begin_pass = [&](const PlannedPass& pass) {
      optimizer.begin_pass(pass.node, &pass == &plan.passes.back());
    };
    optimizer.begin_step({batch.step, plan.shares});
    const StepSums sums = run_passes(
        plan, batch,
        [&](const PlannedPass& planned, const Pass& pass) {
          begin_pass(planned);
          return executor->train(pass, optimizer);
        },
        [&](const PlannedPass& planned) {
          begin_pass(planned);
          executor->skip(optimizer);
        });

    StepReport report;
    report.step = batch.step;
    report.epoch = batch.place.epoch;
    report.loss = total_loss(losses, predictions, sums.losses(), batch.place.samples);
    if (!std::isfinite(report.loss)) throw_not_finite(report, plan, batch);
    const UpdateReport update = optimizer.apply();
    epoch.add(sums, batch.place.samples);
    report.update = update.update;
    report.learning_rate = update.learning_rate;
    report.gradient_norm = update.gradient_norm;
    report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    report.samples_per_second = static_cast<double>(batch.place.samples) / report.seconds;
    return report;
  }

  /// Every rank looks through its passes; the first finding in rank order is what all throw.
  [[noreturn]] void throw_not_finite(const StepReport& report, const StepPlan& plan, const Batch& batch) {
    std::string found;
    for (const PlannedPass& planned : plan.passes) {
      const Range rows{planned.samples.begin - plan.samples().begin,
                       planned.samples.end - plan.samples().begin};
      const std::vector<Tensor> inputs = rows_of(batch.inputs, rows), targets = rows_of(batch.targets, rows);
      found =
          executor->find_non_finite({batch.step, options.seed, plan.batch, planned.samples, inputs, targets});
      if (!found.empty()) break;
    }
    std::string first = "the loss itself";
    for (const std::string& text : data.all_gather_text(found)) {
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

  Totals evaluate() {
    Totals totals;
    BatchReader reader(*validation, SampleOrder(validation->samples(), 0, false), options.batch, share());
    BatchReader::Memory memory;
    for (std::int64_t step = 1; step <= reader.schedule().steps_per_epoch(); ++step) {
      agree(data, [&] { reader.read(step, memory); });
      const Batch& batch = memory.batch;
      const StepPlan plan = this->plan(batch.place.samples);
      totals.add(
          run_passes(
              plan, batch, [&](const PlannedPass&, const Pass& pass) { return executor->evaluate(pass); },
              [](const PlannedPass&) {}),
          batch.place.samples);
    }
    return totals;
  }

  /// Keras's names: "loss", "accuracy"; with several outputs also "<output>_loss" and "<output>_accuracy".
  void add_values(const std::string& prefix, const Totals& totals,
                  std::map<std::string, double>& values) const {
    const bool several = losses.size() > 1;
    values[prefix + "loss"] = total_loss(losses, predictions, totals.losses, totals.samples);
    std::size_t metric = 0;
    for (std::size_t o = 0; o < losses.size(); ++o) {
      const std::string output = several ? losses[o].output + "_" : "";
      if (several) {
        values[prefix + output + "loss"] =
            totals.losses[o] / losses[o].divisor(predictions[o], totals.samples);
      }
      for (const auto& m : losses[o].metrics) {
        const auto hits = static_cast<double>(totals.hits[metric++]);
        values[prefix + output + std::string(m->name())] =
            hits / static_cast<double>(m->total(predictions[o], totals.samples));
      }
    }
  }

  EpochReport end_epoch(const Batch& batch) {
    EpochReport report;
    report.epoch = batch.place.epoch;
    report.step = batch.step;
    add_values("", epoch, report.values);
    if (validation) add_values("val_", evaluate(), report.values);
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
  s.gradients = data.split(0, data.rank(), "gradients");
  agree(data, [&] {
    if (options.batch < 1) throw UsageError("--batch must be at least 1");
    if (options.accumulate < 1) throw UsageError("--accumulate must be at least 1");
    s.predictions = model.output_specs();
    s.samples_per_leaf = samples_per_leaf(options.batch, model.rows_per_sample());
    s.schedule = {s.training->samples(), options.batch};
    const std::int64_t most = std::max(s.largest_pass(s.training->samples()),
                                       s.validation ? s.largest_pass(s.validation->samples()) : 0);
    s.executor = std::make_unique<Executor>(model, backend, s.losses, std::max<std::int64_t>(most, 1), true);
  });
  for (const std::int64_t samples : {s.options.batch, s.training->samples() % s.options.batch}) {
    const StepPlan plan = s.plan(std::min(samples, s.training->samples()));
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
  BatchLoader loader(BatchReader(*s.training, order, s.options.batch, s.share()), 1, s.last_step());
  for (Callback* callback : callbacks) callback->on_train_begin();
  bool stop = false;
  for (std::int64_t step = 1; step <= s.last_step() && !stop; ++step) {
    const Batch* batch = nullptr;
    agree(s.data, [&] { batch = &loader.next(); });
    const StepReport report = s.train_step(*batch);
    for (Callback* callback : callbacks) callback->on_step_end(report, stop);
    if (!batch->place.ends_epoch) continue;
    const EpochReport epoch = s.end_epoch(*batch);
    for (Callback* callback : callbacks) callback->on_epoch_end(epoch, stop);
  }
  for (Callback* callback : callbacks) callback->on_train_end();
}

}  // namespace rankine
