#include "runtime/model/layers/mask_layers.hpp"

#include <limits>
#include <nlohmann/json.hpp>

#include "runtime/model/layers/checks.hpp"
#include "runtime/model/layers/kinds.hpp"
#include "runtime/model/operation.hpp"

namespace rankine {
namespace {

/// Works elementwise on int32 of one shape.
class MaskLayer : public Layer {
 public:
  MaskLayer(LayerCommon common, std::size_t inputs) : Layer(std::move(common)), inputs_(inputs) {}

  ValueSpec output(std::span<const ValueSpec> inputs) const final {
    expect_inputs(common(), inputs, inputs_);
    for (const ValueSpec& input : inputs)
      if (input.dtype != DType::int32 || input.shape != inputs[0].shape)
        refuse_layer(common(), "takes int32 of one shape, for masks only");
    return inputs[0];
  }
  CallPlan plan(std::span<const ValueSpec>, const CallArguments&) const final {
    CallPlan plan;
    plan.backward_reads_inputs = false;
    return plan;
  }
  void backward(const CallContext&) const final {}  // masks have no gradients

 private:
  std::size_t inputs_;
};

class NotEqual final : public MaskLayer {
 public:
  NotEqual(LayerCommon common, std::int32_t value) : MaskLayer(std::move(common), 1), value_(value) {}
  void forward(const CallContext& call) const override {
    call.backend.not_equal(call.inputs[0], value_, call.output);
  }

 private:
  std::int32_t value_;
};

class Either final : public MaskLayer {
 public:
  explicit Either(LayerCommon common) : MaskLayer(std::move(common), 2) {}
  void forward(const CallContext& call) const override {
    call.backend.either(call.inputs[0], call.inputs[1], call.output);
  }
};

}  // namespace

std::unique_ptr<Layer> make_not_equal(LayerCommon common, std::int32_t value) {
  return std::make_unique<NotEqual>(std::move(common), value);
}
std::unique_ptr<Layer> make_either(LayerCommon common) {
  return std::make_unique<Either>(std::move(common));
}
LayerCommon mask_common() {
  return {.class_name = "Mask", .name = "mask", .dtype = DType::int32};
}

std::unique_ptr<Layer> make_mask_operation(LayerCommon common, const nlohmann::json& config) {
  if (common.class_name == "LogicalOr") return make_either(std::move(common));
  const nlohmann::json& arguments = config["args"];
  if (arguments.size() != 2 || !is_tensor_argument(arguments[0]) || !arguments[1].is_number_integer())
    refuse_layer(common, "compares something else than ids with one integer, which isn't supported");
  const auto value = arguments[1].get<std::int64_t>();
  if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max())
    refuse_layer(common, "compares ids with " + std::to_string(value) + ", which no int32 is");
  return make_not_equal(std::move(common), static_cast<std::int32_t>(value));
}

}  // namespace rankine
