#include <nlohmann/json.hpp>

#include "runtime/model/config_reader.hpp"
#include "runtime/model/layers/checks.hpp"
#include "runtime/model/layers/kinds.hpp"

namespace rankine {
namespace {

/// Mean over the steps of [steps, features].
class GlobalAveragePooling1D final : public Layer {
 public:
  GlobalAveragePooling1D(LayerCommon layer_common, const nlohmann::json& config)
      : Layer(std::move(layer_common)) {
    ConfigReader reader(config, layer_label(common()));
    keep_steps_ = reader.get<bool>("keepdims", false);
    const auto format = reader.optional<std::string>("data_format").value_or("channels_last");
    if (format != "channels_last")
      reader.refuse("has data_format = " + format + "; only channels_last is supported");
    reader.finish();
  }

  ValueSpec output(std::span<const ValueSpec> inputs) const override {
    const ValueSpec& x = one_floating_input(common(), inputs);
    if (x.shape.rank() != 2)
      refuse_layer(common(), "needs samples of shape (steps, features), not " + x.shape.to_string());
    if (x.shape[0] == 0) refuse_layer(common(), "can't take the mean over 0 steps");
    return {keep_steps_ ? Shape{1, x.shape[1]} : Shape{x.shape[1]}, x.dtype};
  }

  CallPlan plan(std::span<const ValueSpec>, const CallArguments&) const override {
    CallPlan plan;
    plan.backward_reads_inputs = false;
    return plan;
  }
  void forward(const CallContext& call) const override {
    call.backend.mean_middle(call.inputs[0], call.mask(0), without_steps(call.output));
  }
  void backward(const CallContext& call) const override {
    if (call.input_gradients[0])
      call.backend.mean_middle_gradient(without_steps(call.output_gradient), call.mask(0),
                                        call.input_gradients[0]);
  }

 private:
  static Tensor without_steps(const Tensor& y) { return y.reshaped({y.shape[0], y.shape[-1]}); }
  bool keep_steps_ = false;
};

}  // namespace

std::unique_ptr<Layer> make_global_average_pooling1d(LayerCommon common, const nlohmann::json& config) {
  return std::make_unique<GlobalAveragePooling1D>(std::move(common), config);
}

}  // namespace rankine
