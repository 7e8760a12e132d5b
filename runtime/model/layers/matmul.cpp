#include <nlohmann/json.hpp>

#include "runtime/model/layers/checks.hpp"
#include "runtime/model/layers/kinds.hpp"

namespace rankine {
namespace {

/// C = A B for each sample, and for each index of further leading dimensions, which both have.
class Matmul final : public Layer {
 public:
  using Layer::Layer;

  ValueSpec output(std::span<const ValueSpec> inputs) const override {
    expect_inputs(common(), inputs, 2);
    for (const ValueSpec& input : inputs) expect_dtype(common(), input);
    const Shape &a = inputs[0].shape, &b = inputs[1].shape;
    bool fits = a.rank() >= 2 && a.rank() == b.rank();
    for (int d = 0; fits && d < a.rank() - 2; ++d) fits = a[d] == b[d];
    if (!fits || a[-1] != b[-2])
      refuse_layer(common(), "can't multiply samples of shapes " + a.to_string() + " and " + b.to_string() +
                                 "; they must be (…, m, k) and (…, k, n) with equal leading dimensions");
    Shape shape = a;
    shape[a.rank() - 1] = b[-1];
    return {shape, inputs[0].dtype};
  }

  CallPlan plan(std::span<const ValueSpec>, const CallArguments&) const override { return {}; }

  void forward(const CallContext& call) const override {
    product(call, {call.inputs[0], false}, {call.inputs[1], false}, call.output);
  }
  void backward(const CallContext& call) const override {
    const Tensor& dy = call.output_gradient;
    if (call.input_gradients[0]) product(call, {dy, false}, {call.inputs[1], true}, call.input_gradients[0]);
    if (call.input_gradients[1]) product(call, {call.inputs[0], true}, {dy, false}, call.input_gradients[1]);
  }

 private:
  struct Operand {
    const Tensor& tensor;
    bool transposed;
  };
  static std::int64_t matrix(const Tensor& x) { return x.shape[-2] * x.shape[-1]; }

  static void product(const CallContext& call, Operand a, Operand b, const Tensor& c) {
    const std::int64_t k = a.tensor.shape[a.transposed ? -2 : -1];
    call.backend.gemm({.dtype = c.dtype,
                       .transpose_a = a.transposed,
                       .transpose_b = b.transposed,
                       .m = c.shape[-2],
                       .n = c.shape[-1],
                       .k = k,
                       .a = a.tensor.data,
                       .lda = a.tensor.shape[-1],
                       .b = b.tensor.data,
                       .ldb = b.tensor.shape[-1],
                       .c = c.data,
                       .ldc = c.shape[-1],
                       .k_leaves = Leaves::of(k, feature_leaf(k)),
                       .batch = c.shape.product(0, c.shape.rank() - 2),
                       .stride_a = matrix(a.tensor),
                       .stride_b = matrix(b.tensor),
                       .stride_c = matrix(c)});
  }
};

}  // namespace

std::unique_ptr<Layer> make_matmul(LayerCommon common, const nlohmann::json&) {
  return std::make_unique<Matmul>(std::move(common));
}

}  // namespace rankine
