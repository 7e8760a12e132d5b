#include <nlohmann/json.hpp>

#include "runtime/error.hpp"
#include "runtime/model/config_reader.hpp"
#include "runtime/model/layers/checks.hpp"
#include "runtime/model/layers/kinds.hpp"

namespace rankine {
namespace {

/// A layer whose output is its input under another shape, so that there is nothing to compute.
class View : public Layer {
 public:
  using Layer::Layer;

  ValueSpec output(std::span<const ValueSpec> inputs) const final {
    expect_inputs(common(), inputs, 1);
    return {output_shape(inputs[0].shape), inputs[0].dtype};
  }
  CallPlan plan(std::span<const ValueSpec>, const CallArguments&) const final {
    CallPlan plan;
    plan.backward_reads_inputs = false;
    plan.output_is_input = true;
    return plan;
  }
  // For who calls a layer without a plan; the executor never does.
  void forward(const CallContext& call) const final {
    call.backend.copy(call.inputs[0].reshaped(call.output.shape), call.output);
  }
  void backward(const CallContext& call) const final {
    if (!call.input_gradients[0]) return;
    call.backend.copy(call.output_gradient.reshaped(call.input_gradients[0].shape), call.input_gradients[0]);
  }

 private:
  virtual Shape output_shape(const Shape& input) const = 0;
};

class Reshape final : public View {
 public:
  Reshape(LayerCommon layer_common, const nlohmann::json& config) : View(std::move(layer_common)) {
    ConfigReader reader(config, layer_label(common()));
    target_ = reader.required<std::vector<std::int64_t>>("target_shape");
    reader.finish();
    int open = 0;
    for (const std::int64_t size : target_) {
      if (size < -1)
        refuse_layer(common(), "has a negative size in target_shape " + Shape(target_).to_string());
      open += size == -1 ? 1 : 0;
    }
    if (open > 1)
      refuse_layer(common(), "has more than one -1 in target_shape " + Shape(target_).to_string());
  }

 private:
  Shape output_shape(const Shape& input) const override {
    Shape shape(target_);
    std::int64_t known = 1;
    int open = -1;
    for (int d = 0; d < shape.rank(); ++d) {
      if (shape[d] == -1) {
        open = d;
      } else {
        known *= shape[d];
      }
    }
    if (open >= 0 && known > 0) shape[open] = input.elements() / known;
    if (shape.elements() != input.elements() || (open >= 0 && known == 0))
      refuse_layer(common(), "can't reshape samples of shape " + input.to_string() + " to target_shape " +
                                 Shape(target_).to_string());
    return shape;
  }

  std::vector<std::int64_t> target_;
};

class Flatten final : public View {
 public:
  Flatten(LayerCommon layer_common, const nlohmann::json& config) : View(std::move(layer_common)) {
    ConfigReader reader(config, layer_label(common()));
    channels_first_ =
        reader.optional<std::string>("data_format").value_or("channels_last") == "channels_first";
    reader.finish();
  }

 private:
  Shape output_shape(const Shape& input) const override {
    // With one dimension the two formats are the same.
    if (channels_first_ && input.rank() > 1)
      refuse_layer(
          common(),
          "has data_format = channels_first; only channels_last is supported (put a Permute before)");
    return {input.elements()};
  }
  bool channels_first_ = false;
};

class Identity final : public View {
 public:
  Identity(LayerCommon layer_common, const nlohmann::json& config) : View(std::move(layer_common)) {
    ConfigReader(config, layer_label(common())).finish();
  }

 private:
  Shape output_shape(const Shape& input) const override { return input; }
};

}  // namespace

std::unique_ptr<Layer> make_reshape(LayerCommon common, const nlohmann::json& config) {
  return std::make_unique<Reshape>(std::move(common), config);
}
std::unique_ptr<Layer> make_flatten(LayerCommon common, const nlohmann::json& config) {
  return std::make_unique<Flatten>(std::move(common), config);
}
std::unique_ptr<Layer> make_identity(LayerCommon common, const nlohmann::json& config) {
  return std::make_unique<Identity>(std::move(common), config);
}

}  // namespace rankine
