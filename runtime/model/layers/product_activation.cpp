#include "runtime/model/layers/product_activation.hpp"

namespace rankine {

std::size_t ProductActivation::scratch_count(bool backward) const {
  if (activation_.is_linear()) return 0;
  if (backward) return 1 + activation_.gradient_scratch(product_).size();
  const bool product_in_scratch = activation_.gradient_uses_output() && !activation_.works_in_place();
  return (product_in_scratch ? 1 : 0) + activation_.forward_scratch(product_).size();
}

void ProductActivation::add_to(CallPlan& plan) const {
  if (activation_.is_linear()) return;
  const TensorSpec product{product_, dtype_, true};
  if (!activation_.gradient_uses_output()) {
    plan.saved.push_back(product);
  } else {
    plan.backward_reads_output = true;
    if (!activation_.works_in_place()) plan.forward_scratch.push_back(product);
  }
  for (const Shape& shape : activation_.forward_scratch(product_))
    plan.forward_scratch.push_back({shape, dtype_, true});
  plan.backward_scratch.push_back(product);
  for (const Shape& shape : activation_.gradient_scratch(product_))
    plan.backward_scratch.push_back({shape, dtype_, true});
}

Tensor ProductActivation::product(const CallContext& call) const {
  if (activation_.is_linear() || in_output()) return call.output;
  if (!activation_.gradient_uses_output()) return call.saved.back();
  return call.scratch.last(scratch_count(false)).front();
}

void ProductActivation::finish(const CallContext& call) const {
  if (activation_.is_linear()) return;
  activation_.forward(call.backend, product(call), call.output,
                      call.scratch.last(activation_.forward_scratch(product_).size()));
}

Tensor ProductActivation::gradient(const CallContext& call) const {
  if (activation_.is_linear()) return call.output_gradient;
  const std::span<const Tensor> own = call.scratch.last(scratch_count(true));
  const Tensor kept = activation_.gradient_uses_output() ? call.output : call.saved.back();
  activation_.gradient(call.backend, kept, call.output_gradient, own.front(), own.subspan(1));
  return own.front();
}

}  // namespace rankine
