#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/model/config_reader.hpp"
#include "runtime/model/layers/broadcast.hpp"
#include "runtime/model/layers/checks.hpp"
#include "runtime/model/layers/kinds.hpp"
#include "runtime/model/layers/rows.hpp"

namespace rankine {
namespace {

/// (x - mean) / sqrt(variance + epsilon) * gamma + beta, with the mean and variance of each group of
/// neighbouring channels (the last axis) over everything else in a sample.
class GroupNormalization final : public Layer {
 public:
  GroupNormalization(LayerCommon layer_common, const nlohmann::json& config)
      : Layer(std::move(layer_common)) {
    ConfigReader reader(config, layer_label(common()));
    groups_ = reader.get<std::int64_t>("groups", 32);
    axis_ = reader.get<std::int64_t>("axis", -1);
    epsilon_ = reader.get<double>("epsilon", 1e-3);
    has_gamma_ = reader.get<bool>("scale", true);
    has_beta_ = reader.get<bool>("center", true);
    gamma_rules_ = reader.weight("gamma", "ones");
    beta_rules_ = reader.weight("beta", "zeros");
    reader.finish();
  }

  void build(std::span<const ValueSpec> inputs, VariableBuilder& variables) const override {
    const Shape shape{output(inputs).columns()};
    if (has_gamma_) variables.add({}, "gamma", shape, gamma_rules_, fans_of(shape), common().trainable);
    if (has_beta_) variables.add({}, "beta", shape, beta_rules_, fans_of(shape), common().trainable);
  }

  ValueSpec output(std::span<const ValueSpec> inputs) const override {
    const ValueSpec& x = one_floating_input(common(), inputs);
    if (sample_axis(common(), axis_, x.shape) != x.shape.rank() - 1)
      refuse_layer(common(), "has axis = " + std::to_string(axis_) + "; only the last axis is supported");
    const std::int64_t groups = groups_of(x.columns());
    if (groups < 1 || x.columns() % groups != 0)
      refuse_layer(common(), "has groups = " + std::to_string(groups_) + ", which don't divide " +
                                 std::to_string(x.columns()) + " channels");
    return x;
  }

  CallPlan plan(std::span<const ValueSpec> inputs, const CallArguments&) const override {
    const TensorSpec whole{inputs[0].shape, common().dtype, true};
    CallPlan plan;
    plan.saved = {{{groups_of(inputs[0].columns()), 2}, common().dtype, true}};
    if (has_gamma_) plan.saved.push_back(whole);  // the normalised elements
    plan.forward_scratch = {whole, whole};
    plan.backward_scratch = {whole, whole, whole};
    return plan;
  }

  void forward(const CallContext& call) const override {
    const Tensor &by_group = call.scratch[0], &normalised = call.scratch[1];
    to_groups(call, call.inputs[0], by_group);
    call.backend.layer_norm(rows(call, by_group), {}, {}, epsilon_, rows(call, normalised), statistics(call));
    const Tensor& y = call.output;
    from_groups(call, normalised, has_gamma_ ? call.saved[1] : y);
    if (has_gamma_) multiply_by_gamma(call, call.saved[1], by_group, y);
    if (has_beta_) call.backend.add_bias(matrix(y), call.variables.back(), matrix(y));
  }

  void backward(const CallContext& call) const override {
    const Tensor &dy = call.output_gradient, &dx = call.input_gradients[0];
    const Leaves leaves = call.row_leaves(rows_of(dy) / std::max<std::int64_t>(call.samples, 1));
    if (has_gamma_ && call.variable_gradients[0])
      call.backend.column_dot(matrix(dy), matrix(call.saved[1]), leaves, call.variable_gradients[0]);
    if (has_beta_ && call.variable_gradients.back())
      call.backend.column_sum(matrix(dy), leaves, call.variable_gradients.back());
    if (!dx) return;
    const Tensor &first = call.scratch[0], &second = call.scratch[1], &third = call.scratch[2];
    Tensor scaled = dy;
    if (has_gamma_) {
      multiply_by_gamma(call, dy, first, second);
      scaled = second;
    }
    to_groups(call, scaled, first);
    to_groups(call, call.inputs[0], second);
    call.backend.layer_norm_gradient(rows(call, second), {}, statistics(call), rows(call, first),
                                     rows(call, third), {});
    from_groups(call, third, dx);
  }

 private:
  /// -1: every channel by itself.
  std::int64_t groups_of(std::int64_t channels) const { return groups_ == -1 ? channels : groups_; }
  static Tensor matrix(const Tensor& x) { return x.reshaped({rows_of(x), columns_of(x)}); }
  /// One row a group, the groups of a sample one after another.
  Tensor rows(const CallContext& call, const Tensor& x) const {
    const std::int64_t count = call.samples * groups_of(columns_of(x));
    return x.reshaped({count, count == 0 ? 0 : x.elements() / count});
  }
  Tensor statistics(const CallContext& call) const {
    return call.saved[0].reshaped({call.saved[0].elements() / 2, 2});
  }
  void to_groups(const CallContext& call, const Tensor& from, const Tensor& to) const {
    const std::int64_t groups = groups_of(columns_of(from)), width = columns_of(from) / groups;
    const std::int64_t places = sample_shape(from).elements() / columns_of(from);
    static constexpr int k_order[] = {0, 2, 1, 3};
    call.backend.permute(from.reshaped({call.samples, places, groups, width}), k_order,
                         to.reshaped({call.samples, groups, places, width}));
  }
  void from_groups(const CallContext& call, const Tensor& from, const Tensor& to) const {
    const std::int64_t groups = groups_of(columns_of(to)), width = columns_of(to) / groups;
    const std::int64_t places = sample_shape(to).elements() / columns_of(to);
    static constexpr int k_order[] = {0, 2, 1, 3};
    call.backend.permute(from.reshaped({call.samples, groups, places, width}), k_order,
                         to.reshaped({call.samples, places, groups, width}));
  }
  static void multiply_by_gamma(const CallContext& call, const Tensor& x, const Tensor& repeated,
                                const Tensor& out) {
    const Tensor all = matrix(repeated);
    broadcast(call.backend, call.variables[0].reshaped({1, columns_of(x)}), all);
    call.backend.multiply(x, repeated, out);
  }

  std::int64_t groups_ = 32, axis_ = -1;
  double epsilon_ = 1e-3;
  bool has_gamma_ = true, has_beta_ = true;
  WeightRules gamma_rules_, beta_rules_;
};

}  // namespace

std::unique_ptr<Layer> make_group_normalization(LayerCommon common, const nlohmann::json& config) {
  return std::make_unique<GroupNormalization>(std::move(common), config);
}

}  // namespace rankine
