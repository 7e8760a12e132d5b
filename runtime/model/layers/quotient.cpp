#include "runtime/model/layers/quotient.hpp"

#include "runtime/model/layers/checks.hpp"

namespace rankine {
namespace {

/// A number divided by a tensor: `2 / x`.
class Quotient final : public Layer {
 public:
  Quotient(LayerCommon common, double dividend) : Layer(std::move(common)), dividend_(dividend) {}

  ValueSpec output(std::span<const ValueSpec> inputs) const override {
    return one_floating_input(common(), inputs);
  }
  CallPlan plan(std::span<const ValueSpec>, const CallArguments&) const override { return {}; }
  void forward(const CallContext& call) const override {
    call.backend.activation(k_reciprocal, call.inputs[0], call.output);
    call.backend.scale(call.output, dividend_, call.output);
  }
  void backward(const CallContext& call) const override {
    const Tensor& dx = call.input_gradients[0];
    if (!dx) return;
    call.backend.activation_gradient(k_reciprocal, call.inputs[0], call.output_gradient, dx);
    call.backend.scale(dx, dividend_, dx);
  }

 private:
  static constexpr ActivationFunction k_reciprocal{ActivationKind::reciprocal};
  double dividend_;
};

}  // namespace

std::unique_ptr<Layer> make_quotient(LayerCommon common, double dividend) {
  return std::make_unique<Quotient>(std::move(common), dividend);
}

}  // namespace rankine
