#include <nlohmann/json.hpp>

#include "runtime/model/config_reader.hpp"
#include "runtime/model/layers/checks.hpp"
#include "runtime/model/layers/embedding.hpp"
#include "runtime/model/layers/kinds.hpp"
#include "runtime/model/layers/linear_map.hpp"

namespace rankine {
namespace {

/// An embedding with a way back: called with reverse=True it turns hidden states into logits, with the
/// embeddings transposed when tied, else with weights of its own.
class ReversibleEmbedding final : public Layer {
 public:
  ReversibleEmbedding(LayerCommon layer_common, const nlohmann::json& config)
      : Layer(std::move(layer_common)) {
    ConfigReader reader(config, layer_label(common()));
    input_dim_ = reader.required<std::int64_t>("input_dim");
    output_dim_ = reader.required<std::int64_t>("output_dim");
    tied_ = reader.get<bool>("tie_weights", true);
    rules_ = reader.weight("embeddings", "uniform");
    cap_ = reader.optional<double>("logit_soft_cap");
    mask_zero_ = reader.get<bool>("mask_zero", false);
    const auto dtype = reader.optional<std::string>("reverse_dtype");
    if (dtype && *dtype != name_of(common().dtype))
      reader.refuse("has reverse_dtype = " + *dtype + "; only its own dtype, " +
                    std::string(name_of(common().dtype)) + ", is supported");
    reader.finish();
    expect_positive(common(), "input_dim", input_dim_);
    expect_positive(common(), "output_dim", output_dim_);
    if (cap_ && !(*cap_ > 0.0)) refuse_layer(common(), "has a logit_soft_cap that isn't above 0");
  }

  void build(std::span<const ValueSpec>, VariableBuilder& variables) const override {
    const Shape table{input_dim_, output_dim_}, back{output_dim_, input_dim_};
    variables.add({}, "embeddings", table, rules_, fans_of(table), common().trainable);
    if (!tied_)
      // As in Keras: the regularizer and the constraint are those of the first table alone.
      variables.add({}, "reverse_embeddings", back, {rules_.initializer}, fans_of(back), common().trainable);
  }

  /// Ids are looked up; hidden states are reversed. `plan` holds that against what the call says.
  ValueSpec output(std::span<const ValueSpec> inputs) const override {
    expect_inputs(common(), inputs, 1);
    const ValueSpec& x = inputs[0];
    if (!is_reverse(x)) return looked_up(common(), inputs, output_dim_);
    expect_dtype(common(), x);
    if (x.shape.rank() == 0 || x.shape[-1] != output_dim_)
      refuse_layer(common(), "is reversed for samples of shape " + x.shape.to_string() +
                                 "; their last size must be output_dim = " + std::to_string(output_dim_));
    std::vector<std::int64_t> sizes = x.shape.sizes();
    sizes.back() = input_dim_;
    return {Shape(std::move(sizes)), x.dtype};
  }

  bool masks_zero(const CallArguments& arguments) const override { return mask_zero_ && !arguments.reverse; }

  CallPlan plan(std::span<const ValueSpec> inputs, const CallArguments& arguments) const override {
    const bool reverse = is_reverse(inputs[0]);
    if (reverse != arguments.reverse)
      refuse_layer(common(), std::string("is called with reverse = ") +
                                 (arguments.reverse ? "true" : "false") + " on " +
                                 std::string(name_of(inputs[0].dtype)) +
                                 "; ids must be int32, hidden states floating");
    CallPlan plan;
    if (!tied_) plan.idle_variables = {reverse ? 0 : 1};
    if (reverse && cap_) {
      const TensorSpec logits{output(inputs).shape, common().dtype, true};
      plan.saved = {logits};
      plan.backward_scratch = {logits};
    }
    return plan;
  }

  void forward(const CallContext& call) const override {
    if (!reverses(call)) return look_up(common(), call, call.variables[0]);
    const Tensor y = cap_ ? call.saved[0] : call.output;
    if (tied_) {
      tied_map().input_gradient(call.backend, call.inputs[0], call.variables[0], y);
    } else {
      untied_map().forward(call.backend, call.inputs[0], call.variables[1], {}, y);
    }
    if (!cap_) return;
    call.backend.scale(y, 1.0 / *cap_, y);
    call.backend.activation(k_tanh, y, call.output);
    call.backend.scale(call.output, *cap_, call.output);
  }

  void backward(const CallContext& call) const override {
    if (!reverses(call)) return look_up_gradient(call, call.variable_gradients[0]);
    Tensor dy = call.output_gradient;
    if (cap_) {
      call.backend.activation_gradient(k_tanh, call.saved[0], dy, call.scratch[0]);
      dy = call.scratch[0];
    }
    const Tensor &x = call.inputs[0], &dx = call.input_gradients[0];
    const Leaves rows = call.row_leaves(x.shape.product(1, x.shape.rank() - 1));
    const Tensor& dkernel = call.variable_gradients[tied_ ? 0 : 1];
    // The tied kernel is the embeddings' transpose, so x and dy change places.
    if (dkernel && tied_) tied_map().kernel_gradient(call.backend, dy, x, rows, dkernel);
    if (dkernel && !tied_) untied_map().kernel_gradient(call.backend, x, dy, rows, dkernel);
    if (!dx) return;
    if (tied_) {
      tied_map().forward(call.backend, dy, call.variables[0], {}, dx);
    } else {
      untied_map().input_gradient(call.backend, dy, call.variables[1], dx);
    }
  }

 private:
  static constexpr ActivationFunction k_tanh{ActivationKind::tanh};

  static bool is_reverse(const ValueSpec& x) { return is_floating(x.dtype); }
  static bool reverses(const CallContext& call) { return is_floating(call.inputs[0].dtype); }
  /// From logits to hidden states by the embeddings [input_dim, output_dim].
  LinearMap tied_map() const { return LinearMap::of(input_dim_, output_dim_); }
  LinearMap untied_map() const { return LinearMap::of(output_dim_, input_dim_); }

  std::int64_t input_dim_ = 0, output_dim_ = 0;
  bool tied_ = true, mask_zero_ = false;
  std::optional<double> cap_;
  WeightRules rules_;
};

}  // namespace

std::unique_ptr<Layer> make_reversible_embedding(LayerCommon common, const nlohmann::json& config) {
  return std::make_unique<ReversibleEmbedding>(std::move(common), config);
}

}  // namespace rankine
