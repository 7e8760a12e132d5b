#include <nlohmann/json.hpp>

#include "runtime/model/layers/checks.hpp"
#include "runtime/model/layers/kinds.hpp"
#include "runtime/model/layers/rows.hpp"
#include "runtime/model/layers/trailing_axes.hpp"

namespace rankine {
namespace {

/// (x - mean) / sqrt(variance + epsilon) * gamma + beta over the last axes; with rms_scaling
/// x / sqrt(variance + epsilon) * gamma, as Keras computes it.
class LayerNormalization final : public Layer {
 public:
  LayerNormalization(LayerCommon layer_common, const nlohmann::json& config)
      : Layer(std::move(layer_common)) {
    ConfigReader reader(config, layer_label(common()));
    axes_ = std::make_unique<TrailingAxes>(reader);
    epsilon_ = reader.get<double>("epsilon", 1e-3);
    rms_scaling_ = reader.get<bool>("rms_scaling", false);
    has_gamma_ = reader.get<bool>("scale", true) || rms_scaling_;
    has_beta_ = reader.get<bool>("center", true) && !rms_scaling_;
    gamma_rules_ = reader.weight("gamma", "ones");
    beta_rules_ = reader.weight("beta", "zeros");
    reader.finish();
  }

  void build(std::span<const ValueSpec> inputs, VariableBuilder& variables) const override {
    const Shape shape = normalised(one_floating_input(common(), inputs).shape);
    if (has_gamma_) variables.add({}, "gamma", shape, gamma_rules_, fans_of(shape), common().trainable);
    if (has_beta_) variables.add({}, "beta", shape, beta_rules_, fans_of(shape), common().trainable);
  }

  ValueSpec output(std::span<const ValueSpec> inputs) const override {
    const ValueSpec& x = one_floating_input(common(), inputs);
    normalised(x.shape);
    return x;
  }

  CallPlan plan(std::span<const ValueSpec> inputs, const CallArguments&) const override {
    const Shape shape = normalised(inputs[0].shape);
    Shape statistics{inputs[0].shape.product(0, inputs[0].shape.rank() - shape.rank())};
    if (!rms_scaling_) statistics = {statistics[0], 2};
    CallPlan plan;
    plan.saved.push_back({statistics, common().dtype, true});
    if (has_gamma_) plan.backward_scratch.push_back({inputs[0].shape, common().dtype, true});
    return plan;
  }

  void forward(const CallContext& call) const override {
    const Shape shape = normalised(sample_shape(call.inputs[0]));
    const Tensor x = as_rows(call.inputs[0], shape);
    const Tensor y = as_rows(call.output, shape);
    if (rms_scaling_) {
      call.backend.rms_norm(x, gamma(call), epsilon_, true, y, statistics(call, x));
    } else {
      call.backend.layer_norm(x, gamma(call), has_beta_ ? flat(call.variables.back()) : Tensor{}, epsilon_, y,
                              statistics(call, x));
    }
  }

  void backward(const CallContext& call) const override {
    const Shape shape = normalised(sample_shape(call.inputs[0]));
    const Tensor x = as_rows(call.inputs[0], shape);
    const Tensor dy = as_rows(call.output_gradient, shape);
    const Tensor dx = call.input_gradients[0] ? as_rows(call.input_gradients[0], shape) : Tensor{};
    const Leaves rows = call.row_leaves(x.shape[0] / std::max<std::int64_t>(call.samples, 1));
    const bool wants_gamma = has_gamma_ && call.variable_gradients[0];
    const Tensor normalized_dy = wants_gamma ? as_rows(call.scratch[0], shape) : Tensor{};
    if (rms_scaling_) {
      call.backend.rms_norm_gradient(x, gamma(call), statistics(call, x), true, dy, dx, normalized_dy);
    } else {
      call.backend.layer_norm_gradient(x, gamma(call), statistics(call, x), dy, dx, normalized_dy);
    }
    if (wants_gamma) call.backend.column_sum(normalized_dy, rows, flat(call.variable_gradients[0]));
    if (has_beta_ && call.variable_gradients.back())
      call.backend.column_sum(dy, rows, flat(call.variable_gradients.back()));
  }

 private:
  Shape normalised(const Shape& sample) const { return axes_->of(common(), sample); }
  static Tensor flat(const Tensor& x) { return x.reshaped({x.elements()}); }
  Tensor gamma(const CallContext& call) const { return has_gamma_ ? flat(call.variables[0]) : Tensor{}; }
  Tensor statistics(const CallContext& call, const Tensor& x) const {
    return call.saved[0].reshaped(rms_scaling_ ? Shape{x.shape[0]} : Shape{x.shape[0], 2});
  }

  std::unique_ptr<TrailingAxes> axes_;
  double epsilon_ = 1e-3;
  bool rms_scaling_ = false, has_gamma_ = true, has_beta_ = true;
  WeightRules gamma_rules_, beta_rules_;
};

}  // namespace

std::unique_ptr<Layer> make_layer_normalization(LayerCommon common, const nlohmann::json& config) {
  return std::make_unique<LayerNormalization>(std::move(common), config);
}

}  // namespace rankine
