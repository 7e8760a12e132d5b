#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/model/config_reader.hpp"
#include "runtime/model/layers/broadcast.hpp"
#include "runtime/model/layers/checks.hpp"
#include "runtime/model/layers/kinds.hpp"
#include "runtime/model/layers/rows.hpp"

namespace rankine {
namespace {

/// Add, Subtract, Multiply, Average: elementwise over inputs of one shape, where a size of 1 (not of the
/// batch) is repeated.
class Merge final : public Layer {
 public:
  enum class Operation : std::uint8_t { add, subtract, multiply, average };

  Merge(LayerCommon layer_common, Operation operation, const nlohmann::json& config)
      : Layer(std::move(layer_common)), operation_(operation) {
    ConfigReader(config, layer_label(common())).finish();
  }

  ValueSpec output(std::span<const ValueSpec> inputs) const override {
    if (operation_ == Operation::subtract) expect_inputs(common(), inputs, 2);
    return broadcast_output(common(), inputs);
  }

  CallPlan plan(std::span<const ValueSpec> inputs, const CallArguments&) const override {
    const ValueSpec out = output(inputs);
    CallPlan plan;
    plan.backward_reads_inputs = operation_ == Operation::multiply;
    plan.output_is_input = inputs.size() == 1;
    const bool repeats =
        std::any_of(inputs.begin(), inputs.end(), [&](const ValueSpec& x) { return x.shape != out.shape; });
    const TensorSpec whole{out.shape, common().dtype, true};
    if (repeats || operation_ == Operation::subtract) plan.forward_scratch = {whole};
    if (!repeats) return plan;
    plan.backward_scratch = {whole, whole};
    for (const TensorSpec& spec : broadcast_sum_scratch(out, inputs)) plan.backward_scratch.push_back(spec);
    return plan;
  }

  void forward(const CallContext& call) const override {
    Backend& backend = call.backend;
    const Tensor& y = call.output;
    Tensor left = call.inputs[0];
    if (left.shape != y.shape) {
      broadcast(backend, left, y);
      left = y;
    }
    for (std::size_t i = 1; i < call.inputs.size(); ++i) {
      const Tensor right = whole(call, i);
      if (operation_ == Operation::multiply) {
        backend.multiply(left, right, y);
      } else if (operation_ == Operation::subtract) {
        backend.scale(right, -1.0, call.scratch[0]);
        backend.add(left, call.scratch[0], y);
      } else {
        backend.add(left, right, y);
      }
      left = y;
    }
    if (operation_ == Operation::average) backend.scale(y, 1.0 / static_cast<double>(call.inputs.size()), y);
  }

  void backward(const CallContext& call) const override {
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      const Tensor& dx = call.input_gradients[i];
      if (!dx) continue;
      const BroadcastSum sum(sample_shape(call.output), sample_shape(dx));
      if (operation_ == Operation::multiply) {
        const Tensor product = sum.is_nothing() ? dx : call.scratch[1];
        multiply_by_others(call, i, product);
        sum_back(call, product, dx, sum_scratch(call));
      } else {
        sum_back(call, call.output_gradient, dx, sum_scratch(call));
        const double factor = factor_of(i, call.inputs.size());
        if (factor != 1.0) call.backend.scale(dx, factor, dx);
      }
    }
  }

 private:
  /// Input i in the output's shape, in the first scratch if it has to be repeated.
  static Tensor whole(const CallContext& call, std::size_t i) {
    const Tensor& x = call.inputs[i];
    if (x.shape == call.output.shape) return x;
    broadcast(call.backend, x, call.scratch[0]);
    return call.scratch[0];
  }
  static void multiply_by_others(const CallContext& call, std::size_t i, const Tensor& product) {
    const Tensor* factor = &call.output_gradient;
    for (std::size_t j = 0; j < call.inputs.size(); ++j) {
      if (j == i) continue;
      call.backend.multiply(*factor, whole(call, j), product);
      factor = &product;
    }
    if (factor != &product) call.backend.copy(*factor, product);
  }
  /// Absent when no input is repeated.
  static std::span<const Tensor> sum_scratch(const CallContext& call) {
    return call.scratch.empty() ? call.scratch : call.scratch.subspan(2);
  }
  double factor_of(std::size_t input, std::size_t count) const {
    if (operation_ == Operation::average) return 1.0 / static_cast<double>(count);
    return operation_ == Operation::subtract && input == 1 ? -1.0 : 1.0;
  }

  Operation operation_;
};

}  // namespace

std::unique_ptr<Layer> make_merge(LayerCommon common, const nlohmann::json& config) {
  const std::string& name = common.class_name;
  const auto operation = name == "Multiply"   ? Merge::Operation::multiply
                         : name == "Subtract" ? Merge::Operation::subtract
                         : name == "Average"  ? Merge::Operation::average
                                              : Merge::Operation::add;
  return std::make_unique<Merge>(std::move(common), operation, config);
}

}  // namespace rankine
