#include "runtime/training/executor.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <optional>

#include "runtime/error.hpp"
#include "runtime/training/execution_plan.hpp"

namespace rankine {
namespace {

std::vector<OutputNeed> output_needs(const Model& model, const std::vector<OutputLoss>& losses) {
  std::vector<OutputNeed> needs;
  for (std::size_t o = 0; o < losses.size(); ++o) {
    const auto value = static_cast<std::size_t>(model.graph().outputs[o]);
    const GraphValue& output = model.graph().values[value];
    needs.push_back({losses[o].loss->elements(output.spec), !losses[o].metrics.empty(),
                     losses[o].loss->ignored().has_value()});
    if (output.mask >= 0 && needs.back().loss_elements != output.spec.rows())
      throw ConfigError("the output '" + losses[o].output + "' of shape " + output.spec.shape.to_string() +
                        " is masked by rows, but its loss has " + std::to_string(needs.back().loss_elements) +
                        " entries a sample, which isn't supported");
  }
  return needs;
}

/// Reports the uses of a call whose backward is done; returns how many have been reported in all.
int report_ready(const PlannedCall& planned, int ready, Optimizer& optimizer) {
  for (const int use : planned.uses) {
    if (use < 0) continue;
    optimizer.gradient_ready(use);
    ++ready;
  }
  optimizer.progress();
  return ready;
}

std::vector<std::int64_t> place_in(const Shape& shape, std::int64_t flat) {
  std::vector<std::int64_t> place(static_cast<std::size_t>(shape.rank()));
  for (int d = shape.rank() - 1; d >= 0; --d) {
    place[static_cast<std::size_t>(d)] = flat % shape[d];
    flat /= shape[d];
  }
  return place;
}

}  // namespace

struct Executor::State {
  const Model& model;
  Backend& backend;
  std::vector<OutputLoss> losses;
  std::vector<OutputNeed> needs;  ///< one an output
  std::int64_t max_samples;
  ExecutionPlan train;        ///< empty when only evaluating
  ExecutionPlan forward;      ///< losses, no backward
  ExecutionPlan output;       ///< no losses
  BatchSums batch_sums;       ///< of the last training step
  std::vector<Buffer> pools;  ///< one for each pass that is in memory at once

  PassRun run_of(const ExecutionPlan& plan, const Pass& pass, std::size_t pool = 0) const {
    return {model, backend, plan, batch_sums, pools[pool].data(), pass};
  }

  /// Which rows of output o its loss counts, absent where all count. Written into the pool where labels say
  /// it.
  Tensor counting_rows(const PassRun& run, std::size_t o) {
    const Tensor mask = run.output_mask(o);
    const std::optional<std::int32_t> ignored = losses[o].loss->ignored();
    if (!ignored) return mask;
    const Tensor counts = run.pool_tensor(run.plan().outputs[o].counts);
    backend.not_equal(run.pass().targets[o], *ignored, counts);
    if (mask) backend.keep(counts, mask, counts);
    return counts;
  }

  /// The loss of output o summed over its rows, and the gradient.
  double run_loss(const PassRun& run, std::size_t o) {
    const OutputLoss& loss = losses[o];
    const PlannedOutput& planned = run.plan().outputs[o];
    const int value = model.graph().outputs[o];
    const Tensor elements = run.pool_tensor(planned.element_loss);
    Tensor gradient = run.pool_tensor(planned.gradient.write);
    if (gradient) gradient = gradient.reshaped(run.shape_of(value));
    const Tensor counts = counting_rows(run, o);
    Tensor target = run.pass().targets[o];
    if (planned.labels >= 0) {
      target = run.pool_tensor(planned.labels);
      backend.keep(run.pass().targets[o], counts, target);
    }
    const double scale = loss.weight / loss.divisor(run.pass().counted[o]);
    loss.loss->compute(backend, run.value(value), target, scale, elements, gradient);
    for (const Tensor& rows : {elements, gradient}) {
      if (rows && counts) backend.clear_rows(rows, counts);
      if (rows && !run.pass().weights.empty()) backend.scale_rows(rows, run.pass().weights[o]);
    }
    run.add_up(planned.gradient);
    return sum_of_rows(run, o, elements);
  }

  /// Keras adds the weights up as they are given: one a sample counts once, unless a mask spreads it over the
  /// entries.
  double sum_of_weights(const PassRun& run, std::size_t o, const Tensor& counts) {
    const Tensor& weights = run.pass().weights[o];
    if (!counts)
      return backend.sum(
          weights, run.pass().batch.rows(run.samples(), weights.shape.product(1, weights.shape.rank())));
    const Tensor spread = run.pool_tensor(run.plan().outputs[o].element_loss);
    backend.fill(spread, 1.0);
    backend.clear_rows(spread, counts);
    backend.scale_rows(spread, weights);
    return sum_of_rows(run, o, spread);
  }

  double sum_of_rows(const PassRun& run, std::size_t o, const Tensor& terms) {
    return backend.sum(terms, run.pass().batch.rows(run.samples(), needs[o].loss_elements));
  }

  PassSums run_losses(const PassRun& run) {
    PassSums sums;
    for (std::size_t o = 0; o < losses.size(); ++o) sums.push_back(run_loss(run, o));
    for (std::size_t o = 0; o < losses.size(); ++o) {
      const Tensor prediction = run.value(model.graph().outputs[o]), mask = run.output_mask(o);
      const Tensor numerators = run.pool_tensor(run.plan().outputs[o].numerators);
      const Tensor denominators = run.pool_tensor(run.plan().outputs[o].denominators);
      for (const LoggedMetric& logged : losses[o].metrics) {
        logged.metric->compute(backend, prediction, run.pass().targets[o], numerators, denominators);
        for (const Tensor& terms : {numerators, denominators}) {
          if (mask && logged.metric->heeds_mask()) backend.clear_rows(terms, mask);
          if (logged.is_weighted && !run.pass().weights.empty())
            backend.scale_rows(terms, run.pass().weights[o]);
          sums.push_back(sum_of_rows(run, o, terms));
        }
      }
    }
    return sums;
  }
};

Executor::Executor(const Model& model, Backend& backend, std::vector<OutputLoss> losses,
                   std::int64_t max_samples, bool training, std::size_t most_passes)
    : state_(std::make_unique<State>(
          State{model, backend, std::move(losses), {}, max_samples, {}, {}, {}, {}, {}})) {
  State& s = *state_;
  s.needs = output_needs(model, s.losses);
  if (training) s.train = plan_execution(model.graph(), model.variables(), s.needs, max_samples, true);
  s.forward = plan_execution(model.graph(), model.variables(), s.needs, max_samples, false);
  s.output = plan_execution(model.graph(), model.variables(), {}, max_samples, false);
  const std::size_t bytes = std::max({s.train.bytes, s.forward.bytes, s.output.bytes});
  s.batch_sums = BatchSums(model.graph(), s.train, most_passes, backend);
  const std::size_t pools = s.batch_sums.empty() ? 1 : std::max<std::size_t>(most_passes, 1);
  try {
    for (std::size_t i = 0; i < pools; ++i) s.pools.push_back(backend.allocate(bytes));
  } catch (const std::bad_alloc&) {
    throw ConfigError("the activations of " + std::to_string(max_samples) + " samples a pass need " +
                      std::to_string((bytes * pools) >> 20) +
                      " MiB, more than this rank can get; use a smaller --batch, more " +
                      "ranks or --accumulate");
  }
}

Executor::~Executor() = default;

const std::vector<GradientUse>& Executor::gradient_uses() const {
  return state_->train.gradient_uses;
}
const std::vector<OutputLoss>& Executor::losses() const {
  return state_->losses;
}
std::size_t Executor::pool_bytes() const {
  return state_->pools.size() * state_->pools.front().bytes();
}

double Executor::penalty() const {
  double sum = 0.0;
  for (const Variable& variable : state_->model.variables())
    if (variable.trainable) sum += variable.rules.regularizer.penalty(state_->backend, variable.value);
  return sum;
}

std::vector<bool> Executor::counts_vary(bool has_weights) const {
  const Graph& graph = state_->model.graph();
  std::vector<bool> vary;
  for (std::size_t o = 0; o < state_->losses.size(); ++o) {
    const bool is_masked = graph.values[static_cast<std::size_t>(graph.outputs[o])].mask >= 0;
    const bool by_weights = state_->losses[o].loss->reduction() == Reduction::mean_with_sample_weight;
    vary.push_back(is_masked || state_->needs[o].ignores_labels || (has_weights && by_weights));
  }
  return vary;
}

std::vector<double> Executor::entries(std::int64_t samples) const {
  std::vector<double> entries;
  for (const OutputNeed& need : state_->needs)
    entries.push_back(static_cast<double>(samples * need.loss_elements));
  return entries;
}

std::vector<double> Executor::count_entries(const Pass& pass) {
  State& s = *state_;
  const PassRun run = s.run_of(s.forward, pass);
  for (std::size_t i = 0; i < s.model.graph().calls.size(); ++i)
    if (s.model.graph().calls[i].makes_mask) run.forward(i, false);
  std::vector<double> entries = this->entries(pass.samples.size());
  for (std::size_t o = 0; o < entries.size(); ++o) {
    const Tensor counts = s.counting_rows(run, o);
    if (!pass.weights.empty() && s.losses[o].loss->reduction() == Reduction::mean_with_sample_weight)
      entries[o] = s.sum_of_weights(run, o, counts);
    else if (counts)
      entries[o] = static_cast<double>(s.backend.count_set(counts));
  }
  return entries;
}

PassSums Executor::train(const Pass& pass, Optimizer& optimizer) {
  State& s = *state_;
  const PassRun run = s.run_of(s.train, pass);
  const std::size_t calls = s.model.graph().calls.size();
  int ready = 0;
  try {
    for (std::size_t i = 0; i < calls; ++i) run.forward(i, true);
    PassSums sums = s.run_losses(run);
    for (std::size_t i = calls; i-- > 0;) {
      run.backward(i, optimizer);
      ready = report_ready(s.train.calls[i], ready, optimizer);
    }
    return sums;
  } catch (...) {
    for (; ready < static_cast<int>(s.train.gradient_uses.size()); ++ready) optimizer.gradient_ready(ready);
    throw;
  }
}

bool Executor::takes_passes_together() const {
  return !state_->batch_sums.empty();
}

std::vector<PassSums> Executor::train_together(const StepPlan& plan, std::span<const Pass> passes,
                                               Communicator& data, Optimizer& optimizer) {
  State& s = *state_;
  std::vector<PassRun> runs;
  for (const Pass& pass : passes) runs.push_back(s.run_of(s.train, pass, runs.size()));
  // After an error the collectives go on, with whatever numbers.
  std::exception_ptr failure;
  const auto attempt = [&failure](const auto& work) {
    if (failure) return;
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
  };
  const auto begin_pass = [&](std::size_t p) {
    optimizer.begin_pass(plan.passes[p].node, p + 1 == plan.passes.size());
  };
  const auto complete_sums = [&](std::size_t i, std::size_t first, std::size_t count) {
    for (std::size_t k = first; k < first + count; ++k) {
      for (std::size_t p = 0; p < runs.size(); ++p)
        attempt([&] { runs[p].add_to_sum(i, k, s.batch_sums.share(i, k, p)); });
      s.batch_sums.reduce(i, k, plan, data);
    }
  };
  const std::vector<PlannedCall>& calls = s.train.calls;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    complete_sums(i, 0, calls[i].forward_sums.size());
    for (const PassRun& run : runs) attempt([&] { run.forward(i, true); });
  }
  std::vector<PassSums> sums;
  for (const PassRun& run : runs) attempt([&] { sums.push_back(s.run_losses(run)); });
  for (std::size_t i = calls.size(); i-- > 0;) {
    complete_sums(i, calls[i].forward_sums.size(), calls[i].backward_sums.size());
    for (std::size_t p = 0; p < runs.size(); ++p) {
      begin_pass(p);
      attempt([&] { runs[p].backward(i, optimizer); });
      report_ready(calls[i], 0, optimizer);
    }
  }
  if (failure) std::rethrow_exception(failure);
  return sums;
}

void Executor::after_update(const BatchLeaves& batch) {
  State& s = *state_;
  for (std::size_t i = 0; i < s.train.calls.size(); ++i) {
    const GraphCall& call = s.model.graph().calls[i];
    if (s.train.calls[i].forward_sums.empty()) continue;
    std::vector<Tensor> variables;
    for (const int v : call.variables)
      variables.push_back(s.model.variables()[static_cast<std::size_t>(v)].value);
    CallContext context{.backend = s.backend};
    context.batch = batch;
    context.variables = variables;
    context.sums = s.batch_sums.of(i);
    call.layer->after_update(context);
  }
}

void Executor::skip(Optimizer& optimizer) const {
  for (int use = 0; use < static_cast<int>(gradient_uses().size()); ++use) optimizer.gradient_ready(use);
}

PassSums Executor::evaluate(const Pass& pass) {
  State& s = *state_;
  const PassRun run = s.run_of(s.forward, pass);
  for (std::size_t i = 0; i < s.model.graph().calls.size(); ++i) run.forward(i, false);
  return s.run_losses(run);
}

std::vector<Tensor> Executor::predict(std::span<const Tensor> inputs, std::int64_t samples) {
  State& s = *state_;
  const Pass pass{.step = 0,
                  .seed = 0,
                  .batch = {samples, 1},
                  .samples = {0, samples},
                  .inputs = inputs,
                  .targets = {},
                  .weights = {},
                  .counted = {}};
  const PassRun run = s.run_of(s.output, pass);
  for (std::size_t i = 0; i < s.model.graph().calls.size(); ++i) run.forward(i, false);
  std::vector<Tensor> outputs;
  for (const int output : s.model.graph().outputs) outputs.push_back(run.value(output));
  return outputs;
}

NonFinite Executor::find_non_finite(const Pass& pass) {
  State& s = *state_;
  const auto bad_place = [&](const Tensor& tensor) -> std::string {
    const std::int64_t at = is_floating(tensor.dtype) ? s.backend.find_non_finite(tensor) : -1;
    return at < 0 ? ""
                  : " at " + Shape(place_in(tensor.shape, at)).to_string() +
                        " (first dimension: sample of the pass)";
  };
  for (std::size_t i = 0; i < pass.inputs.size(); ++i) {
    const std::string bad = bad_place(pass.inputs[i]);
    if (!bad.empty()) return {0, "input \"" + s.model.input_names()[i] + "\"" + bad};
  }
  for (std::size_t i = 0; i < pass.targets.size(); ++i) {
    const std::string bad = bad_place(pass.targets[i]);
    if (!bad.empty()) return {1, "target \"" + s.model.output_names()[i] + "\"" + bad};
  }
  for (std::size_t i = 0; i < pass.weights.size(); ++i) {
    const std::string bad = bad_place(pass.weights[i]);
    if (!bad.empty()) return {1, "sample weight of \"" + s.model.output_names()[i] + "\"" + bad};
  }
  for (const Variable& variable : s.model.variables()) {
    if (is_floating(variable.dtype) && s.backend.find_non_finite(variable.value) >= 0)
      return {2, "weight " + variable.path};
  }
  const PassRun run = s.run_of(s.train.calls.empty() ? s.forward : s.train, pass);
  for (std::size_t i = 0; i < s.model.graph().calls.size(); ++i) {
    run.forward(i, true);
    const std::string bad = bad_place(run.value(s.model.graph().calls[i].output));
    if (!bad.empty())
      return {3 + static_cast<std::int64_t>(i), "the output of layer " + s.model.graph().calls[i].path + bad};
  }
  return {};
}

}  // namespace rankine
