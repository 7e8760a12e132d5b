#include <nlohmann/json.hpp>

#include "runtime/model/config_reader.hpp"
#include "runtime/model/layers/checks.hpp"
#include "runtime/model/layers/kinds.hpp"

namespace rankine {
namespace {

/// Zeroes a share of the elements in training and scales the others up. Which ones is a function of the run's
/// seed, the step and the element, so Keras's own `seed` means nothing here.
class Dropout final : public Layer {
 public:
  Dropout(LayerCommon layer_common, const nlohmann::json& config) : Layer(std::move(layer_common)) {
    ConfigReader reader(config, layer_label(common()));
    rate_ = reader.required<double>("rate");
    reader.ignore({"seed"});
    if (const auto* noise_shape = reader.raw("noise_shape");
        noise_shape != nullptr && !noise_shape->is_null())
      reader.refuse("has a noise_shape; only noise_shape = null is supported");
    reader.finish();
    if (rate_ < 0.0 || rate_ > 1.0)
      refuse_layer(common(), "has rate = " + std::to_string(rate_) + "; it must lie between 0 and 1");
  }

  ValueSpec output(std::span<const ValueSpec> inputs) const override {
    return one_floating_input(common(), inputs);
  }

  CallPlan plan(std::span<const ValueSpec>, const CallArguments&) const override {
    CallPlan plan;
    plan.backward_reads_inputs = false;
    plan.output_is_input = rate_ == 0.0;
    return plan;
  }

  void forward(const CallContext& call) const override {
    if (call.training) {
      apply(call, call.inputs[0], call.output);
    } else {
      call.backend.copy(call.inputs[0], call.output);
    }
  }

  void backward(const CallContext& call) const override {
    if (!call.input_gradients[0]) return;
    if (call.training) {
      apply(call, call.output_gradient, call.input_gradients[0]);
    } else {
      call.backend.copy(call.output_gradient, call.input_gradients[0]);
    }
  }

 private:
  void apply(const CallContext& call, const Tensor& x, const Tensor& y) const {
    if (rate_ == 1.0) {
      call.backend.fill(y, 0.0);
      return;
    }
    call.backend.dropout({.rate = rate_,
                          .seed = call.seed,
                          .first_sample = call.first_sample,
                          .step = call.step,
                          .call = call.call},
                         x, y);
  }

  double rate_ = 0.0;
};

}  // namespace

std::unique_ptr<Layer> make_dropout(LayerCommon common, const nlohmann::json& config) {
  return std::make_unique<Dropout>(std::move(common), config);
}

}  // namespace rankine
