#include <nlohmann/json.hpp>

#include "runtime/model/config_reader.hpp"
#include "runtime/model/layers/broadcast.hpp"
#include "runtime/model/layers/checks.hpp"
#include "runtime/model/layers/kinds.hpp"

namespace rankine {
namespace {

/// [features] -> [n, features], n times the same.
class RepeatVector final : public Layer {
 public:
  RepeatVector(LayerCommon layer_common, const nlohmann::json& config) : Layer(std::move(layer_common)) {
    ConfigReader reader(config, layer_label(common()));
    n_ = reader.required<std::int64_t>("n");
    reader.finish();
    expect_positive(common(), "n", n_);
  }

  ValueSpec output(std::span<const ValueSpec> inputs) const override {
    const ValueSpec& x = one_floating_input(common(), inputs);
    if (x.shape.rank() != 1)
      refuse_layer(common(), "needs samples of shape (features,), not " + x.shape.to_string());
    return {{n_, x.shape[0]}, x.dtype};
  }

  CallPlan plan(std::span<const ValueSpec>, const CallArguments&) const override {
    CallPlan plan;
    plan.backward_reads_inputs = false;
    plan.backward_scratch = {{{n_}, common().dtype, false}};
    return plan;
  }

  void forward(const CallContext& call) const override {
    broadcast(call.backend, with_steps(call.inputs[0]), call.output);
  }

  void backward(const CallContext& call) const override {
    const Tensor& dx = call.input_gradients[0];
    if (!dx) return;
    if (n_ == 1) {
      call.backend.copy(call.output_gradient.reshaped(dx.shape), dx);
      return;
    }
    const std::int64_t features = dx.shape[-1];
    BroadcastSum({n_, features}, {1, features})
        .run(call.backend, call.output_gradient, dx, call.samples, {}, call.scratch[0]);
  }

 private:
  static Tensor with_steps(const Tensor& x) { return x.reshaped({x.shape[0], 1, x.shape[1]}); }
  std::int64_t n_ = 1;
};

}  // namespace

std::unique_ptr<Layer> make_repeat_vector(LayerCommon common, const nlohmann::json& config) {
  return std::make_unique<RepeatVector>(std::move(common), config);
}

}  // namespace rankine
