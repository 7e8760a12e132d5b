#include "runtime/model/layers/embedding.hpp"

#include <nlohmann/json.hpp>

#include "runtime/error.hpp"
#include "runtime/model/config_reader.hpp"
#include "runtime/model/layers/checks.hpp"
#include "runtime/model/layers/kinds.hpp"

namespace rankine {
namespace {

/// Rows of a table, looked up by integer ids.
class Embedding final : public Layer {
 public:
  Embedding(LayerCommon layer_common, const nlohmann::json& config) : Layer(std::move(layer_common)) {
    ConfigReader reader(config, layer_label(common()));
    input_dim_ = reader.required<std::int64_t>("input_dim");
    output_dim_ = reader.required<std::int64_t>("output_dim");
    rules_ = reader.weight("embeddings", "uniform");
    mask_zero_ = reader.get<bool>("mask_zero", false);
    if (reader.optional<std::int64_t>("input_length"))
      reader.refuse("has input_length, a key of Keras 2; the model's Input says the length");
    reader.finish();
    expect_positive(common(), "input_dim", input_dim_);
    expect_positive(common(), "output_dim", output_dim_);
  }

  void build(std::span<const ValueSpec> inputs, VariableBuilder& variables) const override {
    output(inputs);
    const Shape table{input_dim_, output_dim_};
    variables.add({}, "embeddings", table, rules_, fans_of(table), common().trainable);
  }

  ValueSpec output(std::span<const ValueSpec> inputs) const override {
    return looked_up(common(), inputs, output_dim_);
  }

  bool masks_zero(const CallArguments&) const override { return mask_zero_; }
  CallPlan plan(std::span<const ValueSpec>, const CallArguments&) const override { return {}; }

  void forward(const CallContext& call) const override { look_up(common(), call, call.variables[0]); }

  void backward(const CallContext& call) const override {
    look_up_gradient(call, call.variable_gradients[0]);
  }

 private:
  bool mask_zero_ = false;
  std::int64_t input_dim_ = 0, output_dim_ = 0;
  WeightRules rules_;
};

}  // namespace

ValueSpec looked_up(const LayerCommon& common, std::span<const ValueSpec> inputs, std::int64_t output_dim) {
  expect_inputs(common, inputs, 1);
  if (inputs[0].dtype != DType::int32)
    refuse_layer(common, "looks up " + std::string(name_of(inputs[0].dtype)) +
                             " ids; give the model's Input dtype=\"int32\"");
  std::vector<std::int64_t> sizes = inputs[0].shape.sizes();
  sizes.push_back(output_dim);
  return {Shape(std::move(sizes)), common.dtype};
}

void look_up(const LayerCommon& common, const CallContext& call, const Tensor& table) {
  try {
    call.backend.gather(table, call.inputs[0], call.output);
  } catch (const DataError& error) {
    throw DataError(layer_label(common) + ": " + error.what());
  }
}

void look_up_gradient(const CallContext& call, const Tensor& table_gradient) {
  if (!table_gradient) return;
  const Shape& ids = call.inputs[0].shape;
  call.backend.scatter_add(call.inputs[0], call.output_gradient, call.row_leaves(ids.product(1, ids.rank())),
                           table_gradient);
}

std::unique_ptr<Layer> make_embedding(LayerCommon common, const nlohmann::json& config) {
  return std::make_unique<Embedding>(std::move(common), config);
}

}  // namespace rankine
