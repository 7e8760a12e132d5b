#include <nlohmann/json.hpp>

#include "runtime/model/config_reader.hpp"
#include "runtime/model/layers/checks.hpp"
#include "runtime/model/layers/kinds.hpp"
#include "runtime/model/layers/linear_map.hpp"
#include "runtime/model/layers/product_activation.hpp"
#include "runtime/model/layers/rows.hpp"

namespace rankine {
namespace {

/// activation(x kernel + bias) over the last dimension.
class Dense final : public Layer {
 public:
  Dense(LayerCommon layer_common, const nlohmann::json& config) : Layer(std::move(layer_common)) {
    ConfigReader reader(config, layer_label(common()));
    units_ = reader.required<std::int64_t>("units");
    use_bias_ = reader.get<bool>("use_bias", true);
    if (const auto* activation = reader.raw("activation"))
      activation_ = activation_from_config(*activation, layer_label(common()));
    kernel_rules_ = reader.weight("kernel", "glorot_uniform");
    bias_rules_ = reader.weight("bias", "zeros");
    reader.finish();
    expect_positive(common(), "units", units_);
  }

  void build(std::span<const ValueSpec> inputs, VariableBuilder& variables) const override {
    const Shape kernel{width(inputs), units_};
    variables.add({}, "kernel", kernel, kernel_rules_, fans_of(kernel), common().trainable);
    if (use_bias_) variables.add({}, "bias", {units_}, bias_rules_, fans_of({units_}), common().trainable);
  }

  ValueSpec output(std::span<const ValueSpec> inputs) const override {
    return {activation_.output(product(inputs), layer_label(common())), common().dtype};
  }

  CallPlan plan(std::span<const ValueSpec> inputs, const CallArguments&) const override {
    CallPlan plan;
    ProductActivation(activation_, product(inputs), common().dtype).add_to(plan);
    return plan;
  }

  void forward(const CallContext& call) const override {
    const ProductActivation after = activation(call);
    map(call).forward(call.backend, call.inputs[0], call.variables[0],
                      use_bias_ ? call.variables[1] : Tensor{}, after.product(call));
    after.finish(call);
  }

  void backward(const CallContext& call) const override {
    const Tensor dy = activation(call).gradient(call);
    const LinearMap product = map(call);
    const Tensor& x = call.inputs[0];
    const Leaves rows = call.row_leaves(x.shape.product(1, x.shape.rank() - 1));
    if (call.variable_gradients[0])
      product.kernel_gradient(call.backend, x, dy, rows, call.variable_gradients[0]);
    if (use_bias_ && call.variable_gradients[1])
      call.backend.column_sum(dy, rows, call.variable_gradients[1]);
    if (call.input_gradients[0])
      product.input_gradient(call.backend, dy, call.variables[0], call.input_gradients[0]);
  }

 private:
  std::int64_t width(std::span<const ValueSpec> inputs) const {
    const ValueSpec& x = one_floating_input(common(), inputs);
    if (x.shape.rank() == 0) refuse_layer(common(), "needs an input with a last dimension");
    return x.shape[-1];
  }
  Shape product(std::span<const ValueSpec> inputs) const {
    width(inputs);
    Shape shape = inputs[0].shape;
    shape[-1] = units_;
    return shape;
  }
  ProductActivation activation(const CallContext& call) const {
    Shape shape = sample_shape(call.inputs[0]);
    shape[-1] = units_;
    return {activation_, shape, common().dtype};
  }
  LinearMap map(const CallContext& call) const { return LinearMap::of(call.inputs[0].shape[-1], units_); }

  std::int64_t units_ = 0;
  bool use_bias_ = true;
  Activation activation_;
  WeightRules kernel_rules_, bias_rules_;
};

}  // namespace

std::unique_ptr<Layer> make_dense(LayerCommon common, const nlohmann::json& config) {
  return std::make_unique<Dense>(std::move(common), config);
}

}  // namespace rankine
