#include "runtime/model/layers/affine.hpp"

#include "runtime/model/layers/checks.hpp"
#include "runtime/model/layers/rows.hpp"

namespace rankine {
namespace {

/// A tensor and numbers: `0.5 * x`, `1 - x`, `x / 2`.
class Affine final : public Layer {
 public:
  Affine(LayerCommon common, AffineOptions options) : Layer(std::move(common)), options_(options) {}

  ValueSpec output(std::span<const ValueSpec> inputs) const override {
    return one_floating_input(common(), inputs);
  }
  CallPlan plan(std::span<const ValueSpec> inputs, const CallArguments&) const override {
    CallPlan plan;
    plan.backward_reads_inputs = false;
    if (options_.offset != 0.0) plan.forward_scratch = {{{inputs[0].columns()}, inputs[0].dtype, false}};
    return plan;
  }
  void forward(const CallContext& call) const override {
    call.backend.scale(call.inputs[0], options_.scale, call.output);
    if (options_.offset == 0.0) return;
    const Tensor& row = call.scratch[0];
    call.backend.fill(row, options_.offset);
    const Tensor y = call.output.reshaped({call.output.elements() / row.elements(), row.elements()});
    call.backend.add_bias(y, row, y);
  }
  void backward(const CallContext& call) const override {
    if (call.input_gradients[0])
      call.backend.scale(call.output_gradient, options_.scale, call.input_gradients[0]);
  }

 private:
  AffineOptions options_;
};

}  // namespace

std::unique_ptr<Layer> make_affine(LayerCommon common, AffineOptions options) {
  return std::make_unique<Affine>(std::move(common), options);
}

}  // namespace rankine
