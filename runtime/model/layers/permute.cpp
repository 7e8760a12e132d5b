#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/model/config_reader.hpp"
#include "runtime/model/layers/checks.hpp"
#include "runtime/model/layers/kinds.hpp"

namespace rankine {
namespace {

/// Reorders a sample's dimensions; Keras counts them from 1.
class Permute final : public Layer {
 public:
  Permute(LayerCommon layer_common, const nlohmann::json& config) : Layer(std::move(layer_common)) {
    ConfigReader reader(config, layer_label(common()));
    const auto dims = reader.required<std::vector<std::int64_t>>("dims");
    reader.finish();
    order_ = {0};
    back_.assign(dims.size() + 1, 0);
    std::vector<std::int64_t> sorted = dims;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (sorted[i] != static_cast<std::int64_t>(i) + 1)
        refuse_layer(common(), "has dims " + Shape(dims).to_string() +
                                   ", which isn't an order of 1 to the number of dimensions");
      order_.push_back(static_cast<int>(dims[i]));
      back_[static_cast<std::size_t>(dims[i])] = static_cast<int>(i) + 1;
    }
  }

  ValueSpec output(std::span<const ValueSpec> inputs) const override {
    const ValueSpec& x = one_floating_input(common(), inputs);
    if (x.shape.rank() + 1 != static_cast<int>(order_.size()))
      refuse_layer(common(), "has " + std::to_string(order_.size() - 1) + " dims but samples of shape " +
                                 x.shape.to_string());
    Shape shape = x.shape;
    for (int d = 0; d < shape.rank(); ++d) shape[d] = x.shape[order_[static_cast<std::size_t>(d) + 1] - 1];
    return {shape, x.dtype};
  }

  CallPlan plan(std::span<const ValueSpec>, const CallArguments&) const override {
    CallPlan plan;
    plan.backward_reads_inputs = false;
    return plan;
  }
  void forward(const CallContext& call) const override {
    call.backend.permute(call.inputs[0], order_, call.output);
  }
  void backward(const CallContext& call) const override {
    if (call.input_gradients[0]) call.backend.permute(call.output_gradient, back_, call.input_gradients[0]);
  }

 private:
  std::vector<int> order_, back_;
};

}  // namespace

std::unique_ptr<Layer> make_permute(LayerCommon common, const nlohmann::json& config) {
  return std::make_unique<Permute>(std::move(common), config);
}

}  // namespace rankine
