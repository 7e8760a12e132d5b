#include <nlohmann/json.hpp>

#include "runtime/model/activation.hpp"
#include "runtime/model/config_reader.hpp"
#include "runtime/model/layers/checks.hpp"
#include "runtime/model/layers/kinds.hpp"

namespace rankine {
namespace {

/// A layer that is nothing but an activation: Activation, ReLU, LeakyReLU, ELU.
class ActivationLayer final : public Layer {
 public:
  ActivationLayer(LayerCommon layer_common, const Activation& activation)
      : Layer(std::move(layer_common)), activation_(activation) {}

  ValueSpec output(std::span<const ValueSpec> inputs) const override {
    const ValueSpec& x = one_floating_input(common(), inputs);
    return {activation_.output(x.shape, layer_label(common())), x.dtype};
  }

  CallPlan plan(std::span<const ValueSpec> inputs, const CallArguments&) const override {
    CallPlan plan;
    plan.output_is_input = activation_.is_linear();
    plan.backward_reads_inputs = !activation_.gradient_uses_output();
    plan.backward_reads_output = activation_.gradient_uses_output();
    for (const Shape& shape : activation_.forward_scratch(inputs[0].shape))
      plan.forward_scratch.push_back({shape, common().dtype, true});
    for (const Shape& shape : activation_.gradient_scratch(inputs[0].shape))
      plan.backward_scratch.push_back({shape, common().dtype, true});
    return plan;
  }

  void forward(const CallContext& call) const override {
    activation_.forward(call.backend, call.inputs[0], call.output, call.scratch);
  }

  void backward(const CallContext& call) const override {
    if (!call.input_gradients[0]) return;
    activation_.gradient(call.backend, activation_.gradient_uses_output() ? call.output : call.inputs[0],
                         call.output_gradient, call.input_gradients[0], call.scratch);
  }

 private:
  Activation activation_;
};

}  // namespace

std::unique_ptr<Layer> make_activation(LayerCommon common, const nlohmann::json& config) {
  const std::string owner = layer_label(common);
  ConfigReader reader(config, owner);
  const nlohmann::json* activation = reader.raw("activation");
  if (activation == nullptr) reader.refuse("lacks the key 'activation'");
  reader.finish();
  return std::make_unique<ActivationLayer>(std::move(common), activation_from_config(*activation, owner));
}

std::unique_ptr<Layer> make_activation_layer(LayerCommon common, const nlohmann::json& config) {
  const Activation activation = activation_of_layer(common.class_name, config, layer_label(common));
  return std::make_unique<ActivationLayer>(std::move(common), activation);
}

}  // namespace rankine
