#include <nlohmann/json.hpp>

#include "runtime/model/config_reader.hpp"
#include "runtime/model/layers/broadcast.hpp"
#include "runtime/model/layers/kinds.hpp"

namespace rankine {
namespace {

/// Maximum, Minimum: elementwise, as Keras does it one input after another. Where two are equal each gets
/// half of the gradient, as JAX says, so with several equal ones the last gets most.
class ExtremumLayer final : public Layer {
 public:
  ExtremumLayer(LayerCommon layer_common, Extremum kind, const nlohmann::json& config)
      : Layer(std::move(layer_common)), kind_(kind) {
    ConfigReader(config, layer_label(common())).finish();
  }

  ValueSpec output(std::span<const ValueSpec> inputs) const override {
    return broadcast_output(common(), inputs);
  }

  CallPlan plan(std::span<const ValueSpec> inputs, const CallArguments&) const override {
    const ValueSpec out = output(inputs);
    const TensorSpec whole{out.shape, out.dtype, true};
    CallPlan plan;
    plan.output_is_input = inputs.size() == 1;
    plan.forward_scratch = {whole};
    plan.backward_scratch = {whole, whole, whole, whole};
    for (const TensorSpec& spec : broadcast_sum_scratch(out, inputs)) plan.backward_scratch.push_back(spec);
    return plan;
  }

  void forward(const CallContext& call) const override {
    of_first(call, call.inputs.size(), call.output, call.scratch[0]);
  }

  void backward(const CallContext& call) const override {
    const Tensor &before = call.scratch[0], &repeated = call.scratch[1], &share = call.scratch[2];
    Tensor dy = call.output_gradient;
    for (std::size_t i = call.inputs.size(); i-- > 1;) {
      of_first(call, i, before, repeated);
      const Tensor x = whole(call, i, repeated);
      give(call, i, x, before, dy, share);
      if (i == 1) return give(call, 0, before, x, dy, share);
      call.backend.extremum_gradient(kind_, before, x, dy, call.scratch[3]);
      dy = call.scratch[3];
    }
  }

 private:
  /// Input i in the output's shape, in `scratch` if it has to be repeated.
  static Tensor whole(const CallContext& call, std::size_t i, const Tensor& scratch) {
    const Tensor& x = call.inputs[i];
    if (x.shape == scratch.shape) return x;
    broadcast(call.backend, x, scratch);
    return scratch;
  }
  /// The extremum of the first `count` inputs.
  void of_first(const CallContext& call, std::size_t count, const Tensor& to, const Tensor& scratch) const {
    broadcast(call.backend, call.inputs[0], to);
    for (std::size_t i = 1; i < count; ++i) call.backend.extremum(kind_, to, whole(call, i, scratch), to);
  }
  /// The gradient of input i, whose whole value is x, against the other value.
  void give(const CallContext& call, std::size_t i, const Tensor& x, const Tensor& other, const Tensor& dy,
            const Tensor& share) const {
    if (!call.input_gradients[i]) return;
    call.backend.extremum_gradient(kind_, x, other, dy, share);
    sum_back(call, share, call.input_gradients[i], call.scratch.subspan(4));
  }

  Extremum kind_;
};

}  // namespace

std::unique_ptr<Layer> make_extremum(LayerCommon common, const nlohmann::json& config) {
  const Extremum kind = common.class_name == "Maximum" ? Extremum::maximum : Extremum::minimum;
  return std::make_unique<ExtremumLayer>(std::move(common), kind, config);
}

}  // namespace rankine
