#include "runtime/training/executor.hpp"

#include <algorithm>
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
  ExecutionPlan train;    ///< empty when only evaluating
  ExecutionPlan forward;  ///< losses, no backward
  ExecutionPlan output;   ///< no losses
  Buffer pool;

  /// One run of a plan over one pass: turns places into tensors.
  struct Run {
    State& state;
    const ExecutionPlan& plan;
    std::int64_t samples;
    std::span<const Tensor> inputs;

    Tensor pool_tensor(int index) const {
      if (index < 0) return {};
      const PoolTensor& t = plan.tensors[static_cast<std::size_t>(index)];
      return {state.pool.data() + t.offset, t.spec.dtype,
              t.spec.per_sample ? t.spec.shape.with_leading(samples) : t.spec.shape};
    }
    std::vector<Tensor> pool_tensors(const std::vector<int>& indices) const {
      std::vector<Tensor> tensors;
      for (const int index : indices) tensors.push_back(pool_tensor(index));
      return tensors;
    }
    Tensor value(int value) const {
      const ValuePlace& place = plan.values[static_cast<std::size_t>(value)];
      const Tensor root =
          place.input >= 0 ? inputs[static_cast<std::size_t>(place.input)] : pool_tensor(place.pool);
      return root.reshaped(shape_of(value));
    }
    Shape shape_of(int value) const {
      return state.model.graph().values[static_cast<std::size_t>(value)].spec.shape.with_leading(samples);
    }
  };

  /// The tensors of one call, kept alive while its context points at them.
  struct Binding {
    std::vector<Tensor> inputs, masks, variables, saved, scratch, input_gradients, variable_gradients;
    CallContext context;
  };

  Binding bind(const Run& run, std::size_t i, const Pass& pass, bool training) {
    const GraphCall& call = model.graph().calls[i];
    const PlannedCall& planned = run.plan.calls[i];
    Binding b{.context = {.backend = backend}};
    for (const int input : call.inputs) b.inputs.push_back(run.value(input));
    for (const int mask : call.masks) b.masks.push_back(mask < 0 ? Tensor{} : run.value(mask));
    for (const int v : call.variables)
      b.variables.push_back(model.variables()[static_cast<std::size_t>(v)].value);
    b.saved = run.pool_tensors(planned.saved);
    CallContext& c = b.context;
    c.samples = run.samples;
    c.first_sample = pass.samples.begin;
    c.step = pass.step;
    c.seed = pass.seed;
    c.call = call.number;
    c.training = training;
    c.batch = pass.batch;
    c.arguments = call.arguments;
    c.inputs = b.inputs;
    c.masks = b.masks;
    c.output = run.value(call.output);
    c.variables = b.variables;
    c.saved = b.saved;
    return b;
  }

  void run_forward(const Run& run, std::size_t i, const Pass& pass, bool training) {
    if (run.plan.calls[i].is_view) return;
    Binding b = bind(run, i, pass, training);
    b.scratch = run.pool_tensors(run.plan.calls[i].forward_scratch);
    b.context.scratch = b.scratch;
    model.graph().calls[i].layer->forward(b.context);
  }

  void run_backward(const Run& run, std::size_t i, const Pass& pass, Optimizer& optimizer) {
    const PlannedCall& planned = run.plan.calls[i];
    if (!planned.runs_backward) return;
    const GraphCall& call = model.graph().calls[i];
    Binding b = bind(run, i, pass, true);
    b.scratch = run.pool_tensors(planned.backward_scratch);
    b.context.scratch = b.scratch;
    b.context.output_gradient = run.pool_tensor(planned.output_gradient);
    for (std::size_t k = 0; k < planned.input_gradients.size(); ++k) {
      const int write = planned.input_gradients[k].write;
      b.input_gradients.push_back(write < 0 ? Tensor{}
                                            : run.pool_tensor(write).reshaped(run.shape_of(call.inputs[k])));
    }
    for (const int use : planned.uses)
      b.variable_gradients.push_back(use < 0 ? Tensor{} : optimizer.gradient(use));
    b.context.input_gradients = b.input_gradients;
    b.context.variable_gradients = b.variable_gradients;
    call.layer->backward(b.context);
    for (const GradientTarget& target : planned.input_gradients) add_up(run, target);
  }

  void add_up(const Run& run, const GradientTarget& target) {
    if (target.add_to < 0) return;
    const Tensor sum = run.pool_tensor(target.add_to);
    backend.add(sum, run.pool_tensor(target.write), sum);
  }

  /// The mask of output o, absent where it has none.
  Tensor output_mask(const Run& run, std::size_t o) const {
    const auto value = static_cast<std::size_t>(model.graph().outputs[o]);
    const int mask = model.graph().values[value].mask;
    return mask < 0 ? Tensor{} : run.value(mask);
  }

  /// Which rows of output o its loss counts, absent where all count. Written into the pool where labels say
  /// it.
  Tensor counting_rows(const Run& run, const Pass& pass, std::size_t o) {
    const Tensor mask = output_mask(run, o);
    const std::optional<std::int32_t> ignored = losses[o].loss->ignored();
    if (!ignored) return mask;
    const Tensor counts = run.pool_tensor(run.plan.outputs[o].counts);
    backend.not_equal(pass.targets[o], *ignored, counts);
    if (mask) backend.keep(counts, mask, counts);
    return counts;
  }

  /// The loss of output o summed over its rows, and the gradient.
  double run_loss(const Run& run, const Pass& pass, std::size_t o) {
    const OutputLoss& loss = losses[o];
    const PlannedOutput& planned = run.plan.outputs[o];
    const int value = model.graph().outputs[o];
    const Tensor elements = run.pool_tensor(planned.element_loss);
    Tensor gradient = run.pool_tensor(planned.gradient.write);
    if (gradient) gradient = gradient.reshaped(run.shape_of(value));
    const Tensor counts = counting_rows(run, pass, o);
    Tensor target = pass.targets[o];
    if (planned.labels >= 0) {
      target = run.pool_tensor(planned.labels);
      backend.keep(pass.targets[o], counts, target);
    }
    const double scale = loss.weight / loss.divisor(pass.counted[o]);
    loss.loss->compute(backend, run.value(value), target, scale, elements, gradient);
    for (const Tensor& rows : {elements, gradient}) {
      if (rows && counts) backend.clear_rows(rows, counts);
      if (rows && !pass.weights.empty()) backend.scale_rows(rows, pass.weights[o]);
    }
    add_up(run, planned.gradient);
    return sum_of_rows(run, pass, o, elements);
  }

  /// Keras adds the weights up as they are given: one a sample counts once, unless a mask spreads it over the
  /// entries.
  double sum_of_weights(const Run& run, const Pass& pass, std::size_t o, const Tensor& counts) {
    const Tensor& weights = pass.weights[o];
    if (!counts)
      return backend.sum(weights,
                         pass.batch.rows(run.samples, weights.shape.product(1, weights.shape.rank())));
    const Tensor spread = run.pool_tensor(run.plan.outputs[o].element_loss);
    backend.fill(spread, 1.0);
    backend.clear_rows(spread, counts);
    backend.scale_rows(spread, weights);
    return sum_of_rows(run, pass, o, spread);
  }

  double sum_of_rows(const Run& run, const Pass& pass, std::size_t o, const Tensor& terms) {
    return backend.sum(terms, pass.batch.rows(run.samples, needs[o].loss_elements));
  }

  PassSums run_losses(const Run& run, const Pass& pass) {
    PassSums sums;
    for (std::size_t o = 0; o < losses.size(); ++o) sums.push_back(run_loss(run, pass, o));
    for (std::size_t o = 0; o < losses.size(); ++o) {
      const Tensor prediction = run.value(model.graph().outputs[o]), mask = output_mask(run, o);
      const Tensor numerators = run.pool_tensor(run.plan.outputs[o].numerators);
      const Tensor denominators = run.pool_tensor(run.plan.outputs[o].denominators);
      for (const LoggedMetric& logged : losses[o].metrics) {
        logged.metric->compute(backend, prediction, pass.targets[o], numerators, denominators);
        for (const Tensor& terms : {numerators, denominators}) {
          if (mask && logged.metric->heeds_mask()) backend.clear_rows(terms, mask);
          if (logged.is_weighted && !pass.weights.empty()) backend.scale_rows(terms, pass.weights[o]);
          sums.push_back(sum_of_rows(run, pass, o, terms));
        }
      }
    }
    return sums;
  }
};

Executor::Executor(const Model& model, Backend& backend, std::vector<OutputLoss> losses,
                   std::int64_t max_samples, bool training)
    : state_(std::make_unique<State>(
          State{model, backend, std::move(losses), {}, max_samples, {}, {}, {}, {}})) {
  State& s = *state_;
  s.needs = output_needs(model, s.losses);
  if (training) s.train = plan_execution(model.graph(), model.variables(), s.needs, max_samples, true);
  s.forward = plan_execution(model.graph(), model.variables(), s.needs, max_samples, false);
  s.output = plan_execution(model.graph(), model.variables(), {}, max_samples, false);
  const std::size_t bytes = std::max({s.train.bytes, s.forward.bytes, s.output.bytes});
  try {
    s.pool = backend.allocate(bytes);
  } catch (const std::bad_alloc&) {
    throw ConfigError("the activations of " + std::to_string(max_samples) + " samples a pass need " +
                      std::to_string(bytes >> 20) +
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
  return state_->pool.bytes();
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
  const State::Run run{s, s.forward, pass.samples.size(), pass.inputs};
  for (std::size_t i = 0; i < s.model.graph().calls.size(); ++i)
    if (s.model.graph().calls[i].makes_mask) s.run_forward(run, i, pass, false);
  std::vector<double> entries = this->entries(pass.samples.size());
  for (std::size_t o = 0; o < entries.size(); ++o) {
    const Tensor counts = s.counting_rows(run, pass, o);
    if (!pass.weights.empty() && s.losses[o].loss->reduction() == Reduction::mean_with_sample_weight)
      entries[o] = s.sum_of_weights(run, pass, o, counts);
    else if (counts)
      entries[o] = static_cast<double>(s.backend.count_set(counts));
  }
  return entries;
}

PassSums Executor::train(const Pass& pass, Optimizer& optimizer) {
  State& s = *state_;
  const State::Run run{s, s.train, pass.samples.size(), pass.inputs};
  const std::size_t calls = s.model.graph().calls.size();
  int ready = 0;
  try {
    for (std::size_t i = 0; i < calls; ++i) s.run_forward(run, i, pass, true);
    PassSums sums = s.run_losses(run, pass);
    for (std::size_t i = calls; i-- > 0;) {
      s.run_backward(run, i, pass, optimizer);
      ready = report_ready(s.train.calls[i], ready, optimizer);
    }
    return sums;
  } catch (...) {
    for (; ready < static_cast<int>(s.train.gradient_uses.size()); ++ready) optimizer.gradient_ready(ready);
    throw;
  }
}

void Executor::skip(Optimizer& optimizer) const {
  for (int use = 0; use < static_cast<int>(gradient_uses().size()); ++use) optimizer.gradient_ready(use);
}

PassSums Executor::evaluate(const Pass& pass) {
  State& s = *state_;
  const State::Run run{s, s.forward, pass.samples.size(), pass.inputs};
  for (std::size_t i = 0; i < s.model.graph().calls.size(); ++i) s.run_forward(run, i, pass, false);
  return s.run_losses(run, pass);
}

std::vector<Tensor> Executor::predict(std::span<const Tensor> inputs, std::int64_t samples) {
  State& s = *state_;
  const State::Run run{s, s.output, samples, inputs};
  const Pass pass{.step = 0,
                  .seed = 0,
                  .batch = {samples, 1},
                  .samples = {0, samples},
                  .inputs = inputs,
                  .targets = {},
                  .weights = {},
                  .counted = {}};
  for (std::size_t i = 0; i < s.model.graph().calls.size(); ++i) s.run_forward(run, i, pass, false);
  std::vector<Tensor> outputs;
  for (const int output : s.model.graph().outputs) outputs.push_back(run.value(output));
  return outputs;
}

std::string Executor::find_non_finite(const Pass& pass) {
  State& s = *state_;
  const auto bad_place = [&](const Tensor& tensor) -> std::string {
    const std::int64_t at = is_floating(tensor.dtype) ? s.backend.find_non_finite(tensor) : -1;
    return at < 0 ? ""
                  : " at " + Shape(place_in(tensor.shape, at)).to_string() +
                        " (first dimension: sample of the pass)";
  };
  for (std::size_t i = 0; i < pass.inputs.size(); ++i) {
    const std::string bad = bad_place(pass.inputs[i]);
    if (!bad.empty()) return "input \"" + s.model.input_names()[i] + "\"" + bad;
  }
  for (std::size_t i = 0; i < pass.targets.size(); ++i) {
    const std::string bad = bad_place(pass.targets[i]);
    if (!bad.empty()) return "target \"" + s.model.output_names()[i] + "\"" + bad;
  }
  for (std::size_t i = 0; i < pass.weights.size(); ++i) {
    const std::string bad = bad_place(pass.weights[i]);
    if (!bad.empty()) return "sample weight of \"" + s.model.output_names()[i] + "\"" + bad;
  }
  for (const Variable& variable : s.model.variables()) {
    if (is_floating(variable.dtype) && s.backend.find_non_finite(variable.value) >= 0)
      return "weight " + variable.path;
  }
  const State::Run run{s, s.train.calls.empty() ? s.forward : s.train, pass.samples.size(), pass.inputs};
  for (std::size_t i = 0; i < s.model.graph().calls.size(); ++i) {
    s.run_forward(run, i, pass, true);
    const std::string bad = bad_place(run.value(s.model.graph().calls[i].output));
    if (!bad.empty()) return "the output of layer " + s.model.graph().calls[i].path + bad;
  }
  return "";
}

}  // namespace rankine
