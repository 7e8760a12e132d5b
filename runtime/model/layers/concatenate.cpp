#include <nlohmann/json.hpp>

#include "runtime/model/config_reader.hpp"
#include "runtime/model/layers/checks.hpp"
#include "runtime/model/layers/kinds.hpp"
#include "runtime/model/layers/rows.hpp"

namespace rankine {
namespace {

class Concatenate final : public Layer {
 public:
  Concatenate(LayerCommon layer_common, const nlohmann::json& config) : Layer(std::move(layer_common)) {
    ConfigReader reader(config, layer_label(common()));
    axis_ = reader.get<std::int64_t>("axis", -1);
    reader.finish();
  }

  ValueSpec output(std::span<const ValueSpec> inputs) const override {
    if (inputs.empty()) refuse_layer(common(), "is called without inputs");
    ValueSpec result = inputs[0];
    const int axis = sample_axis(common(), axis_, result.shape);
    for (const ValueSpec& input : inputs.subspan(1)) {
      Shape rest = input.shape;
      if (rest.rank() == result.shape.rank()) rest[axis] = result.shape[axis];
      if (rest != result.shape || input.dtype != result.dtype)
        refuse_layer(common(), "can't join " + describe(input) + " to " + describe(inputs[0]) +
                                   " along axis " + std::to_string(axis_));
      result.shape[axis] += input.shape[axis];
    }
    return result;
  }

  CallPlan plan(std::span<const ValueSpec> inputs, const CallArguments&) const override {
    CallPlan plan;
    plan.backward_reads_inputs = false;
    plan.output_is_input = inputs.size() == 1;
    return plan;
  }

  void forward(const CallContext& call) const override {
    std::int64_t first = 0;
    for (const Tensor& input : call.inputs) {
      put_columns(call.backend, as_matrix(input), as_matrix(call.output), first);
      first += as_matrix(input).shape[1];
    }
  }

  void backward(const CallContext& call) const override {
    std::int64_t first = 0;
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      if (call.input_gradients[i])
        copy_columns(call.backend, as_matrix(call.output_gradient), first,
                     as_matrix(call.input_gradients[i]));
      first += as_matrix(call.inputs[i]).shape[1];
    }
  }

 private:
  static std::string describe(const ValueSpec& value) {
    return std::string(name_of(value.dtype)) + " samples of shape " + value.shape.to_string();
  }
  /// Everything before the axis as rows, the rest as columns.
  Tensor as_matrix(const Tensor& x) const {
    const int axis = static_cast<int>(axis_ < 0 ? axis_ + x.shape.rank() : axis_);
    return x.reshaped({x.shape.product(0, axis), x.shape.product(axis, x.shape.rank())});
  }

  std::int64_t axis_ = -1;
};

}  // namespace

std::unique_ptr<Layer> make_concatenate(LayerCommon common, const nlohmann::json& config) {
  return std::make_unique<Concatenate>(std::move(common), config);
}

}  // namespace rankine
