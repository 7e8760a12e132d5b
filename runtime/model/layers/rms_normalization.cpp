#include <nlohmann/json.hpp>

#include "runtime/model/layers/checks.hpp"
#include "runtime/model/layers/kinds.hpp"
#include "runtime/model/layers/rows.hpp"
#include "runtime/model/layers/trailing_axes.hpp"

namespace rankine {
namespace {

/// x / sqrt(mean(x^2) + epsilon) * scale over the last axes.
class RMSNormalization final : public Layer {
 public:
  RMSNormalization(LayerCommon layer_common, const nlohmann::json& config) : Layer(std::move(layer_common)) {
    ConfigReader reader(config, layer_label(common()));
    axes_ = std::make_unique<TrailingAxes>(reader);
    epsilon_ = reader.get<double>("epsilon", 1e-6);
    reader.finish();
  }

  void build(std::span<const ValueSpec> inputs, VariableBuilder& variables) const override {
    const Shape shape = normalised(one_floating_input(common(), inputs).shape);
    variables.add({}, "scale", shape, {initializer_from_config("ones")}, fans_of(shape), common().trainable);
  }

  ValueSpec output(std::span<const ValueSpec> inputs) const override {
    const ValueSpec& x = one_floating_input(common(), inputs);
    normalised(x.shape);
    return x;
  }

  CallPlan plan(std::span<const ValueSpec> inputs, const CallArguments&) const override {
    const Shape& x = inputs[0].shape;
    CallPlan plan;
    plan.saved.push_back({{x.product(0, x.rank() - normalised(x).rank())}, common().dtype, true});
    plan.backward_scratch.push_back({x, common().dtype, true});
    return plan;
  }

  void forward(const CallContext& call) const override {
    const Shape shape = normalised(sample_shape(call.inputs[0]));
    const Tensor x = as_rows(call.inputs[0], shape);
    call.backend.rms_norm(x, flat(call.variables[0]), epsilon_, false, as_rows(call.output, shape),
                          call.saved[0].reshaped({x.shape[0]}));
  }

  void backward(const CallContext& call) const override {
    const Shape shape = normalised(sample_shape(call.inputs[0]));
    const Tensor x = as_rows(call.inputs[0], shape);
    const Tensor dx = call.input_gradients[0] ? as_rows(call.input_gradients[0], shape) : Tensor{};
    const Tensor dscale = call.variable_gradients[0];
    const Tensor normalized_dy = dscale ? as_rows(call.scratch[0], shape) : Tensor{};
    call.backend.rms_norm_gradient(x, flat(call.variables[0]), call.saved[0].reshaped({x.shape[0]}), false,
                                   as_rows(call.output_gradient, shape), dx, normalized_dy);
    if (dscale)
      call.backend.column_sum(
          normalized_dy, call.row_leaves(x.shape[0] / std::max<std::int64_t>(call.samples, 1)), flat(dscale));
  }

 private:
  Shape normalised(const Shape& sample) const { return axes_->of(common(), sample); }
  static Tensor flat(const Tensor& x) { return x.reshaped({x.elements()}); }

  std::unique_ptr<TrailingAxes> axes_;
  double epsilon_ = 1e-6;
};

}  // namespace

std::unique_ptr<Layer> make_rms_normalization(LayerCommon common, const nlohmann::json& config) {
  return std::make_unique<RMSNormalization>(std::move(common), config);
}

}  // namespace rankine
