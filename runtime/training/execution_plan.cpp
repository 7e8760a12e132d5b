#include "runtime/training/execution_plan.hpp"

#include <algorithm>

namespace rankine {
namespace {

class Planner {
 public:
  Planner(const Graph& graph, std::span<const Variable> variables, std::span<const OutputNeed> outputs,
          std::int64_t max_samples, bool training)
      : graph_(graph),
        variables_(variables),
        needs_(outputs),
        max_samples_(max_samples),
        training_(training) {}

  ExecutionPlan run() {
    place_values();
    for (int i = 0; i < calls(); ++i) plan_forward(i);
    plan_outputs();
    if (training_) {
      for (int i = calls() - 1; i >= 0; --i) plan_backward(i);
    }
    place_in_pool();
    return std::move(plan_);
  }

 private:
  int calls() const { return static_cast<int>(graph_.calls.size()); }
  int loss_time() const { return calls(); }
  int backward_time(int call) const { return 2 * calls() - call; }

  int new_tensor(const TensorSpec& spec, int first, int last) {
    plan_.tensors.push_back({spec, 0});
    const auto samples = static_cast<std::size_t>(spec.per_sample ? max_samples_ : 1);
    items_.push_back(
        {samples * static_cast<std::size_t>(spec.shape.elements()) * size_of(spec.dtype), first, last});
    return static_cast<int>(plan_.tensors.size()) - 1;
  }
  void live_until(int tensor, int time) {
    PoolItem& item = items_[static_cast<std::size_t>(tensor)];
    item.last = std::max(item.last, time);
  }
  void live_until(const ValuePlace& place, int time) {
    if (place.pool >= 0) live_until(place.pool, time);
  }

  ValuePlace& place(int value) { return plan_.values[static_cast<std::size_t>(value)]; }
  const GraphCall& call(int i) const { return graph_.calls[static_cast<std::size_t>(i)]; }
  const ValueSpec& spec(int value) const { return graph_.values[static_cast<std::size_t>(value)].spec; }

  void place_values() {
    plan_.values.resize(graph_.values.size());
    plan_.calls.resize(graph_.calls.size());
    call_plans_.resize(graph_.calls.size());
    needs_gradient_.assign(graph_.values.size(), false);
    root_.resize(graph_.values.size());
    for (std::size_t v = 0; v < root_.size(); ++v) root_[v] = static_cast<int>(v);
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i)
      place(graph_.inputs[i]).input = static_cast<int>(i);
  }

  void plan_forward(int i) {
    const GraphCall& call = this->call(i);
    PlannedCall& planned = plan_.calls[static_cast<std::size_t>(i)];
    std::vector<ValueSpec> inputs;
    bool gradient = false;
    for (const int input : call.inputs) {
      inputs.push_back(spec(input));
      gradient = gradient || needs_gradient_[static_cast<std::size_t>(input)];
    }
    for (const int variable : call.variables) {
      gradient = gradient || variables_[static_cast<std::size_t>(variable)].trainable;
    }
    gradient = gradient && is_floating(spec(call.output).dtype);
    needs_gradient_[static_cast<std::size_t>(call.output)] = gradient;
    CallPlan& needs = call_plans_[static_cast<std::size_t>(i)];
    needs = call.layer->plan(inputs, call.arguments);

    for (const int input : call.inputs) live_until(place(input), i);
    if (needs.output_is_input) {
      planned.is_view = true;
      place(call.output) = place(call.inputs[0]);
      root_[static_cast<std::size_t>(call.output)] = root_[static_cast<std::size_t>(call.inputs[0])];
      return;
    }
    const bool backward = training_ && gradient;
    if (training_) planned.forward_sums = needs.forward_sums;
    if (backward) planned.backward_sums = needs.backward_sums;
    for (const int mask : call.masks)
      if (mask >= 0) live_until(place(mask), backward ? backward_time(i) : i);
    place(call.output).pool = new_tensor({spec(call.output).shape, spec(call.output).dtype, true}, i, i);
    for (const TensorSpec& s : needs.saved)
      planned.saved.push_back(new_tensor(s, i, backward ? backward_time(i) : i));
    for (const TensorSpec& s : needs.forward_scratch) planned.forward_scratch.push_back(new_tensor(s, i, i));
    if (!backward) return;
    if (needs.backward_reads_inputs) {
      for (const int input : call.inputs) live_until(place(input), backward_time(i));
    }
    if (needs.backward_reads_output) live_until(place(call.output), backward_time(i));
  }

  void plan_outputs() {
    gradient_.assign(graph_.values.size(), -1);
    // Without losses the outputs are what is wanted, so they stay to the end.
    for (const int output : graph_.outputs)
      live_until(place(output), needs_.empty() ? backward_time(0) : loss_time());
    for (const int output : graph_.outputs) {
      const int mask = graph_.values[static_cast<std::size_t>(output)].mask;
      if (mask >= 0) live_until(place(mask), loss_time());
    }
    for (std::size_t o = 0; o < needs_.size(); ++o) {
      PlannedOutput planned;
      const auto rows = [&](DType dtype) {
        return new_tensor({{needs_[o].loss_elements}, dtype, true}, loss_time(), loss_time());
      };
      planned.element_loss = rows(DType::float64);
      if (needs_[o].has_metrics) planned.numerators = rows(DType::float64);
      if (needs_[o].has_metrics) planned.denominators = rows(DType::float64);
      if (needs_[o].ignores_labels) planned.counts = rows(DType::int32);
      if (needs_[o].ignores_labels) planned.labels = rows(DType::int32);
      if (training_) planned.gradient = gradient_target(graph_.outputs[o], loss_time());
      plan_.outputs.push_back(planned);
    }
  }

  /// Where a use of `value` at `time` writes its gradient. The first one (in backward order) writes the
  /// gradient itself.
  GradientTarget gradient_target(int value, int time) {
    const int root = root_[static_cast<std::size_t>(value)];
    if (!needs_gradient_[static_cast<std::size_t>(root)]) return {};
    const TensorSpec shape{spec(root).shape, spec(root).dtype, true};
    int& gradient = gradient_[static_cast<std::size_t>(root)];
    if (gradient >= 0) return {new_tensor(shape, time, time), gradient};
    const int producer = graph_.values[static_cast<std::size_t>(root)].producer;
    gradient = new_tensor(shape, time, backward_time(producer));
    return {gradient, -1};
  }

  void plan_backward(int i) {
    const GraphCall& call = this->call(i);
    PlannedCall& planned = plan_.calls[static_cast<std::size_t>(i)];
    if (planned.is_view) return;
    planned.output_gradient = gradient_[static_cast<std::size_t>(call.output)];
    planned.runs_backward = planned.output_gradient >= 0;
    if (!planned.runs_backward) planned.backward_sums.clear();
    planned.uses.assign(call.variables.size(), -1);
    if (!planned.runs_backward) return;
    for (const int input : call.inputs)
      planned.input_gradients.push_back(gradient_target(input, backward_time(i)));
    for (std::size_t j = 0; j < call.variables.size(); ++j) {
      const std::vector<int>& idle = call_plans_[static_cast<std::size_t>(i)].idle_variables;
      const bool is_idle = std::find(idle.begin(), idle.end(), static_cast<int>(j)) != idle.end();
      if (is_idle || !variables_[static_cast<std::size_t>(call.variables[j])].trainable) continue;
      planned.uses[j] = static_cast<int>(plan_.gradient_uses.size());
      plan_.gradient_uses.push_back({call.variables[j]});
    }
    for (const TensorSpec& s : call_plans_[static_cast<std::size_t>(i)].backward_scratch) {
      planned.backward_scratch.push_back(new_tensor(s, backward_time(i), backward_time(i)));
    }
  }

  void place_in_pool() {
    const PoolPlan pool = plan_pool(items_);
    for (std::size_t t = 0; t < plan_.tensors.size(); ++t) plan_.tensors[t].offset = pool.offsets[t];
    plan_.bytes = pool.bytes;
  }

  const Graph& graph_;
  std::span<const Variable> variables_;
  std::span<const OutputNeed> needs_;
  std::int64_t max_samples_;
  bool training_;
  ExecutionPlan plan_;
  std::vector<PoolItem> items_;
  std::vector<CallPlan> call_plans_;
  std::vector<bool> needs_gradient_;
  std::vector<int> root_;      ///< the value whose place a value shares
  std::vector<int> gradient_;  ///< pool tensor of a root value's gradient, once a use has written it
};

}  // namespace

ExecutionPlan plan_execution(const Graph& graph, std::span<const Variable> variables,
                             std::span<const OutputNeed> outputs, std::int64_t max_samples, bool training) {
  return Planner(graph, variables, outputs, max_samples, training).run();
}

}  // namespace rankine
