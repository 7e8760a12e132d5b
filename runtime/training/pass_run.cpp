#include "runtime/training/pass_run.hpp"

namespace rankine {

Tensor PassRun::pool_tensor(int index) const {
  if (index < 0) return {};
  const PoolTensor& t = plan_.tensors[static_cast<std::size_t>(index)];
  return {pool_ + t.offset, t.spec.dtype,
          t.spec.per_sample ? t.spec.shape.with_leading(samples()) : t.spec.shape};
}

std::vector<Tensor> PassRun::pool_tensors(const std::vector<int>& indices) const {
  std::vector<Tensor> tensors;
  for (const int index : indices) tensors.push_back(pool_tensor(index));
  return tensors;
}

Tensor PassRun::value(int value) const {
  const ValuePlace& place = plan_.values[static_cast<std::size_t>(value)];
  const Tensor root =
      place.input >= 0 ? pass_.inputs[static_cast<std::size_t>(place.input)] : pool_tensor(place.pool);
  return root.reshaped(shape_of(value));
}

Shape PassRun::shape_of(int value) const {
  return model_.graph().values[static_cast<std::size_t>(value)].spec.shape.with_leading(samples());
}

Tensor PassRun::output_mask(std::size_t o) const {
  const auto value = static_cast<std::size_t>(model_.graph().outputs[o]);
  const int mask = model_.graph().values[value].mask;
  return mask < 0 ? Tensor{} : this->value(mask);
}

PassRun::Binding PassRun::bind(std::size_t i, bool training) const {
  const GraphCall& call = model_.graph().calls[i];
  const PlannedCall& planned = plan_.calls[i];
  Binding b{.context = {.backend = backend_}};
  for (const int input : call.inputs) b.inputs.push_back(value(input));
  for (const int mask : call.masks) b.masks.push_back(mask < 0 ? Tensor{} : value(mask));
  for (const int v : call.variables)
    b.variables.push_back(model_.variables()[static_cast<std::size_t>(v)].value);
  b.saved = pool_tensors(planned.saved);
  CallContext& c = b.context;
  c.samples = samples();
  c.first_sample = pass_.samples.begin;
  c.step = pass_.step;
  c.seed = pass_.seed;
  c.call = call.number;
  c.training = training;
  c.batch = pass_.batch;
  c.arguments = call.arguments;
  c.inputs = b.inputs;
  c.masks = b.masks;
  c.output = value(call.output);
  c.variables = b.variables;
  c.saved = b.saved;
  if (training) c.sums = sums_.of(i);
  return b;
}

void PassRun::bind_scratch(Binding& b, const std::vector<int>& scratch) const {
  b.scratch = pool_tensors(scratch);
  b.context.scratch = b.scratch;
}

void PassRun::bind_gradients(Binding& b, std::size_t i) const {
  const GraphCall& call = model_.graph().calls[i];
  const PlannedCall& planned = plan_.calls[i];
  bind_scratch(b, planned.backward_scratch);
  b.context.output_gradient = pool_tensor(planned.output_gradient);
  for (std::size_t k = 0; k < planned.input_gradients.size(); ++k) {
    const int write = planned.input_gradients[k].write;
    b.input_gradients.push_back(write < 0 ? Tensor{} : pool_tensor(write).reshaped(shape_of(call.inputs[k])));
  }
  b.context.input_gradients = b.input_gradients;
}

void PassRun::forward(std::size_t i, bool training) const {
  if (plan_.calls[i].is_view) return;
  Binding b = bind(i, training);
  bind_scratch(b, plan_.calls[i].forward_scratch);
  model_.graph().calls[i].layer->forward(b.context);
}

void PassRun::backward(std::size_t i, Optimizer& optimizer) const {
  if (!plan_.calls[i].runs_backward) return;
  Binding b = bind(i, true);
  bind_gradients(b, i);
  for (const int use : plan_.calls[i].uses)
    b.variable_gradients.push_back(use < 0 ? Tensor{} : optimizer.gradient(use));
  b.context.variable_gradients = b.variable_gradients;
  model_.graph().calls[i].layer->backward(b.context);
  for (const GradientTarget& target : plan_.calls[i].input_gradients) add_up(target);
}

void PassRun::add_to_sum(std::size_t i, std::size_t sum, const Tensor& share) const {
  Binding b = bind(i, true);
  if (sum < plan_.calls[i].forward_sums.size())
    bind_scratch(b, plan_.calls[i].forward_scratch);
  else
    bind_gradients(b, i);
  model_.graph().calls[i].layer->add_to_sum(b.context, sum, share);
}

void PassRun::add_up(const GradientTarget& target) const {
  if (target.add_to < 0) return;
  const Tensor sum = pool_tensor(target.add_to);
  backend_.add(sum, pool_tensor(target.write), sum);
}

}  // namespace rankine
