#include <nlohmann/json.hpp>
#include <numeric>

#include "runtime/model/config_reader.hpp"
#include "runtime/model/layers/checks.hpp"
#include "runtime/model/layers/kinds.hpp"

namespace rankine {
namespace {

/// Softmax over one axis; another one than the last is moved there and back.
class Softmax final : public Layer {
 public:
  Softmax(LayerCommon layer_common, const nlohmann::json& config) : Layer(std::move(layer_common)) {
    ConfigReader reader(config, layer_label(common()));
    const nlohmann::json* axis = reader.raw("axis");
    if (axis != nullptr && axis->is_array()) {
      const auto axes = reader.required<std::vector<std::int64_t>>("axis");
      if (axes.size() != 1) reader.refuse("has several axes; softmax over one axis is supported");
      axis_ = axes[0];
    } else {
      axis_ = reader.get<std::int64_t>("axis", -1);
    }
    reader.finish();
  }

  ValueSpec output(std::span<const ValueSpec> inputs) const override {
    const ValueSpec& x = one_floating_input(common(), inputs);
    sample_axis(common(), axis_, x.shape);
    return x;
  }

  CallPlan plan(std::span<const ValueSpec> inputs, const CallArguments&) const override {
    CallPlan plan;
    plan.backward_reads_inputs = false;
    plan.backward_reads_output = true;
    if (is_last(inputs[0].shape)) return plan;
    const TensorSpec moved{inputs[0].shape, common().dtype, true};
    plan.forward_scratch = {moved, moved};
    plan.backward_scratch = {moved, moved, moved};
    return plan;
  }

  void forward(const CallContext& call) const override {
    if (call.scratch.empty()) {
      call.backend.softmax(call.inputs[0], false, call.output);
      return;
    }
    const Tensor x = to_last(call, call.inputs[0], call.scratch[0]);
    const Tensor y = call.scratch[1].reshaped(x.shape);
    call.backend.softmax(x, false, y);
    from_last(call, y, call.output);
  }

  void backward(const CallContext& call) const override {
    if (!call.input_gradients[0]) return;
    if (call.scratch.empty()) {
      call.backend.softmax_gradient(call.output, false, call.output_gradient, call.input_gradients[0]);
      return;
    }
    const Tensor y = to_last(call, call.output, call.scratch[0]);
    const Tensor dy = to_last(call, call.output_gradient, call.scratch[1]);
    const Tensor dx = call.scratch[2].reshaped(y.shape);
    call.backend.softmax_gradient(y, false, dy, dx);
    from_last(call, dx, call.input_gradients[0]);
  }

 private:
  bool is_last(const Shape& sample) const {
    return sample_axis(common(), axis_, sample) == sample.rank() - 1;
  }
  /// Exchanges the axis and the last one; the same order goes there and back.
  std::vector<int> order(const Tensor& x) const {
    const int rank = x.shape.rank();
    std::vector<int> order(static_cast<std::size_t>(rank));
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[static_cast<std::size_t>(axis_ < 0 ? axis_ + rank : axis_)], order.back());
    return order;
  }
  Tensor to_last(const CallContext& call, const Tensor& x, const Tensor& scratch) const {
    const std::vector<int> order = this->order(x);
    Shape moved = x.shape;
    for (int d = 0; d < moved.rank(); ++d) moved[d] = x.shape[order[static_cast<std::size_t>(d)]];
    const Tensor y = scratch.reshaped(moved);
    call.backend.permute(x, order, y);
    return y;
  }
  void from_last(const CallContext& call, const Tensor& x, const Tensor& y) const {
    call.backend.permute(x, order(x), y);
  }

  std::int64_t axis_ = -1;
};

}  // namespace

std::unique_ptr<Layer> make_softmax(LayerCommon common, const nlohmann::json& config) {
  return std::make_unique<Softmax>(std::move(common), config);
}

}  // namespace rankine
