#include "runtime/model/layers/attention.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/model/layers/checks.hpp"
#include "runtime/model/layers/linear_map.hpp"
#include "runtime/model/layers/rows.hpp"

namespace rankine {
namespace {

/// The projections in the order of their variables.
enum class Projection : std::uint8_t { query, key, gate, value, output };
/// Those that attention itself is computed from.
constexpr std::array k_inputs{Projection::query, Projection::key, Projection::value};

/// When query, value and key are one value, their three products are one: its kernel is packed group by
/// group, [d, groups, (query heads, key, value)], so that a group's columns lie together and no head is ever
/// cut.
class AttentionLayer final : public Layer {
 public:
  AttentionLayer(LayerCommon common, AttentionOptions options)
      : Layer(std::move(common)), options_(std::move(options)) {}

  void build(std::span<const ValueSpec> inputs, VariableBuilder& variables) const override {
    const AttentionOptions& o = options_;
    const std::int64_t out = output(inputs).shape[-1];
    add(variables, "query", {inputs[0].shape[-1], o.heads, o.key_dim}, {o.heads, o.key_dim});
    add(variables, "key", {key_of(inputs).shape[-1], o.groups, o.key_dim}, {o.groups, o.key_dim});
    if (o.use_gate)
      add(variables, "gate", {inputs[0].shape[-1], o.heads, o.value_dim}, {o.heads, o.value_dim});
    add(variables, "value", {inputs[1].shape[-1], o.groups, o.value_dim}, {o.groups, o.value_dim});
    add(variables, "attention_output", {o.heads, o.value_dim, out}, {out});
  }

  std::vector<std::pair<std::string, std::string>> empty_groups() const override {
    return {{"_softmax", "softmax"}, {"_dropout_layer", "dropout"}};
  }

  ValueSpec output(std::span<const ValueSpec> inputs) const override {
    if (inputs.size() != 2 && inputs.size() != 3)
      refuse_layer(common(), "takes query, value and maybe key but is called with " +
                                 std::to_string(inputs.size()) + " inputs");
    for (const ValueSpec& input : inputs) {
      expect_dtype(common(), input);
      if (input.shape.rank() != 2)
        refuse_layer(common(), "needs samples of shape (sequence, features), not " + input.shape.to_string());
    }
    if (key_of(inputs).shape[0] != inputs[1].shape[0])
      refuse_layer(common(), "has a key of length " + std::to_string(key_of(inputs).shape[0]) +
                                 " and a value of length " + std::to_string(inputs[1].shape[0]));
    // Each weight has a random number of its own, counted in blocks of four by 32 bits.
    const std::int64_t blocks = options_.heads * inputs[0].shape[0] * ((inputs[1].shape[0] + 3) / 4);
    if (options_.dropout > 0.0 && blocks > std::int64_t{1} << 32)
      refuse_layer(common(), "has dropout and more weights a sample than there are random numbers, 2^34");
    return {{inputs[0].shape[0], options_.output_dim > 0 ? options_.output_dim : inputs[0].shape[-1]},
            common().dtype};
  }

  CallPlan plan(std::span<const ValueSpec> inputs, const CallArguments&) const override {
    const DType dtype = common().dtype;
    const std::int64_t queries = inputs[0].shape[0], keys = inputs[1].shape[0];
    const TensorSpec projected{{queries * options_.heads * options_.key_dim +
                                keys * options_.groups * (options_.key_dim + options_.value_dim)},
                               dtype,
                               true};
    const TensorSpec attended{{queries, options_.heads * options_.value_dim}, dtype, true};
    CallPlan plan;
    plan.saved = {projected, attended, {{options_.heads, queries, 2}, dtype, true}};
    plan.backward_scratch = {projected, attended};
    const bool may_pack =
        std::all_of(inputs.begin(), inputs.end(), [&](const ValueSpec& x) { return x == inputs[0]; });
    if (may_pack) {
      const TensorSpec kernel{{inputs[0].shape[-1], packed_width()}, dtype, false};
      const TensorSpec bias{{packed_width()}, dtype, false};
      plan.forward_scratch = {kernel, bias};
      plan.backward_scratch.insert(plan.backward_scratch.end(), {kernel, kernel, bias});
    }
    if (options_.use_gate) {
      // What goes into the sigmoid; the gate comes last in the scratch, backward with one more.
      plan.saved.push_back(attended);
      plan.forward_scratch.push_back(attended);
      plan.backward_scratch.insert(plan.backward_scratch.end(), {attended, attended});
    }
    return plan;
  }

  void forward(const CallContext& call) const override {
    if (is_packed(call)) {
      const Tensor &kernel = call.scratch[0], bias = options_.use_bias ? call.scratch[1] : Tensor{};
      pack(call, kernel, bias, Direction::pack);
      packed_map(call).forward(call.backend, call.inputs[0], kernel, bias, call.saved[0]);
    } else {
      for (const Projection p : k_inputs)
        map(call, p).forward(call.backend, input(call, p), kernel(call, p), bias(call, p),
                             part(call, call.saved[0], p));
    }
    call.backend.attention(core(call));
    Tensor attended = call.saved[1];
    if (options_.use_gate) {
      attended = call.scratch.back();
      map(call, Projection::gate)
          .forward(call.backend, call.inputs[0], kernel(call, Projection::gate), bias(call, Projection::gate),
                   call.saved[3]);
      call.backend.activation(k_sigmoid, call.saved[3], attended);
      call.backend.multiply(call.saved[1], attended, attended);
    }
    map(call, Projection::output)
        .forward(call.backend, attended, kernel(call, Projection::output), bias(call, Projection::output),
                 call.output);
  }

  void backward(const CallContext& call) const override {
    const Tensor &projected_gradient = call.scratch[0], &attended_gradient = call.scratch[1];
    const Tensor gate = options_.use_gate ? call.scratch.back() : Tensor{};
    const Tensor gate_gradient = options_.use_gate ? call.scratch[call.scratch.size() - 2] : Tensor{};
    Tensor attended = call.saved[1];
    if (gate) {
      attended = gate_gradient;
      call.backend.activation(k_sigmoid, call.saved[3], gate);
      call.backend.multiply(call.saved[1], gate, attended);
    }
    variable_gradients(call, Projection::output, attended, call.output_gradient);
    map(call, Projection::output)
        .input_gradient(call.backend, call.output_gradient, kernel(call, Projection::output),
                        attended_gradient);
    if (gate) {
      call.backend.multiply(attended_gradient, call.saved[1], gate_gradient);
      call.backend.activation_gradient(k_sigmoid, call.saved[3], gate_gradient, gate_gradient);
      call.backend.multiply(attended_gradient, gate, attended_gradient);
    }
    const Attention forward = core(call);
    Attention gradient = forward;
    place(call, projected_gradient, gradient);
    call.backend.attention_gradient(forward, {.output_gradient = attended_gradient.data,
                                              .dq = const_cast<void*>(gradient.q),
                                              .dk = const_cast<void*>(gradient.k),
                                              .dv = const_cast<void*>(gradient.v)});
    if (is_packed(call)) {
      packed_backward(call, projected_gradient);
    } else {
      separate_backward(call, projected_gradient);
    }
    if (gate) {
      variable_gradients(call, Projection::gate, call.inputs[0], gate_gradient);
      if (call.input_gradients[0])
        map(call, Projection::gate)
            .input_gradient(call.backend, gate_gradient, kernel(call, Projection::gate),
                            call.input_gradients[0], true);
    }
  }

 private:
  enum class Direction : std::uint8_t { pack, unpack };
  static constexpr ActivationFunction k_sigmoid{ActivationKind::sigmoid};

  // ---- variables

  void add(VariableBuilder& variables, const std::string& name, const Shape& kernel,
           const Shape& bias) const {
    // Keras shows its sublayers under public names, but not the gate.
    const std::string prefix = name == "gate" ? "_" : options_.attribute_prefix;
    const std::string attribute = prefix + (name == "attention_output" ? "output" : name) + "_dense";
    // The contracted dimensions are all but the bias's.
    const int contracted = kernel.rank() - bias.rank();
    const Fans fans{static_cast<double>(kernel.product(0, contracted)), static_cast<double>(bias.elements())};
    variables.add({attribute, name}, "kernel", kernel, options_.kernel_rules, fans, common().trainable);
    if (options_.use_bias)
      variables.add({attribute, name}, "bias", bias, options_.bias_rules, fans_of(bias), common().trainable);
  }
  std::size_t kernel_index(Projection p) const {
    const bool after_absent_gate = !options_.use_gate && p > Projection::gate;
    return (options_.use_bias ? 2 : 1) * (static_cast<std::size_t>(p) - (after_absent_gate ? 1 : 0));
  }
  /// Kernels as matrices.
  Tensor kernel(const CallContext& call, Projection p) const { return call.variables[kernel_index(p)]; }
  Tensor bias(const CallContext& call, Projection p) const {
    return options_.use_bias ? call.variables[kernel_index(p) + 1] : Tensor{};
  }

  // ---- inputs and products

  static const ValueSpec& key_of(std::span<const ValueSpec> inputs) { return inputs.back(); }
  static std::size_t input_index(const CallContext& call, Projection p) {
    return p == Projection::key ? call.inputs.size() - 1 : p == Projection::value ? 1 : 0;
  }
  static const Tensor& input(const CallContext& call, Projection p) {
    return call.inputs[input_index(call, p)];
  }
  /// One value given for all inputs is one place in memory.
  static bool is_packed(const CallContext& call) {
    return std::all_of(call.inputs.begin(), call.inputs.end(), [&](const Tensor& x) {
      return x.data == call.inputs[0].data && x.shape == call.inputs[0].shape;
    });
  }

  std::int64_t heads_of(Projection p) const {
    return p == Projection::query || p == Projection::gate ? options_.heads : options_.groups;
  }
  std::int64_t head_dim_of(Projection p) const {
    return p == Projection::value || p == Projection::gate ? options_.value_dim : options_.key_dim;
  }

  LinearMap map(const CallContext& call, Projection p) const {
    if (p == Projection::output) {
      const std::int64_t in = options_.heads * options_.value_dim, out = call.output.shape[-1];
      return {in, out, Leaves::of(in, options_.value_dim), Leaves::of(out, feature_leaf(out))};
    }
    const std::int64_t in = input(call, p).shape[-1], out = heads_of(p) * head_dim_of(p);
    const std::int64_t group = out / options_.groups;
    return {in, out, Leaves::of(in, feature_leaf(in)), Leaves::of(out, group)};
  }
  std::int64_t packed_width() const { return options_.groups * options_.group_width(); }
  LinearMap packed_map(const CallContext& call) const {
    const std::int64_t in = call.inputs[0].shape[-1];
    return {in, packed_width(), Leaves::of(in, feature_leaf(in)),
            Leaves::of(packed_width(), options_.group_width())};
  }

  /// Query, key or value inside a projected tensor of separate products: one after another.
  Tensor part(const CallContext& call, const Tensor& projected, Projection p) const {
    const auto elements = [&](Projection q) {
      return call.samples * input(call, q).shape[1] * heads_of(q) * head_dim_of(q);
    };
    std::int64_t first = 0;
    for (const Projection before : k_inputs) {
      if (before == p) break;
      first += elements(before);
    }
    return {element(projected, first), projected.dtype, {elements(p)}};
  }

  /// Where query, key and value lie in a projected tensor.
  void place(const CallContext& call, const Tensor& projected, Attention& a) const {
    const AttentionOptions& o = options_;
    a.q_head = o.key_dim;
    if (is_packed(call)) {
      a.q = projected.data;
      a.k = element(projected, o.heads_per_group() * o.key_dim);
      a.v = element(projected, (o.heads_per_group() + 1) * o.key_dim);
      a.q_row = a.k_row = a.v_row = packed_width();
      a.q_group = a.k_group = a.v_group = o.group_width();
      return;
    }
    a.q = part(call, projected, Projection::query).data;
    a.k = part(call, projected, Projection::key).data;
    a.v = part(call, projected, Projection::value).data;
    a.q_row = o.heads * o.key_dim, a.q_group = o.heads_per_group() * o.key_dim;
    a.k_row = o.groups * o.key_dim, a.k_group = o.key_dim;
    a.v_row = o.groups * o.value_dim, a.v_group = o.value_dim;
  }

  Attention core(const CallContext& call) const {
    Attention a{.dtype = common().dtype,
                .samples = call.samples,
                .query_length = call.inputs[0].shape[1],
                .key_length = call.inputs[1].shape[1],
                .groups = options_.groups,
                .heads_per_group = options_.heads_per_group(),
                .head_dim = options_.key_dim,
                .value_dim = options_.value_dim};
    a.scale = 1.0 / std::sqrt(static_cast<double>(options_.key_dim));
    a.causal = call.arguments.use_causal_mask;
    a.window = options_.window;
    a.query_mask = call.mask(0).data;
    a.key_mask = call.mask(1) ? call.mask(1).data : call.inputs.size() > 2 ? call.mask(2).data : nullptr;
    a.pair_mask = call.mask(call.inputs.size()).data;
    // With dropout Keras takes its own softmax, whose weights are 0 where a query sees nothing.
    a.blind_is_zero = options_.dropout > 0.0;
    if (call.training) a.dropout = {options_.dropout, call.seed, call.first_sample, call.step, call.call};
    place(call, call.saved[0], a);
    a.output = call.saved[1].data;
    a.statistics = call.saved[2].data;
    return a;
  }

  // ---- packing

  /// Copies the query, key and value parts of one packed row (or `rows` of them) from or to Keras's own.
  void copy_part(const CallContext& call, Projection p, std::int64_t rows, const Tensor& own,
                 const Tensor& packed, Direction direction) const {
    const std::int64_t columns = heads_of(p) * head_dim_of(p) / options_.groups;
    const std::int64_t queries = options_.heads_per_group() * options_.key_dim;
    const std::int64_t first = p == Projection::query ? 0
                               : p == Projection::key ? queries
                                                      : queries + options_.key_dim;
    void* at = element(packed, first);
    if (direction == Direction::pack) {
      call.backend.copy_block(own.dtype, rows * options_.groups, columns, own.data, columns, at,
                              options_.group_width());
    } else {
      call.backend.copy_block(own.dtype, rows * options_.groups, columns, at, options_.group_width(),
                              own.data, columns);
    }
  }
  /// Packs the variables, or unpacks into their gradients. An absent bias is left out.
  void pack(const CallContext& call, const Tensor& kernel, const Tensor& bias, Direction direction) const {
    const std::span<const Tensor> own =
        direction == Direction::pack ? call.variables : call.variable_gradients;
    for (const Projection p : k_inputs) {
      const std::size_t at = kernel_index(p);
      if (kernel && own[at]) copy_part(call, p, kernel.shape[0], own[at], kernel, direction);
      if (bias && own[at + 1]) copy_part(call, p, 1, own[at + 1], bias, direction);
    }
  }

  // ---- backward

  void variable_gradients(const CallContext& call, Projection p, const Tensor& x, const Tensor& dy) const {
    const std::size_t at = kernel_index(p);
    const LinearMap product = map(call, p);
    const Leaves rows =
        call.row_leaves(dy.elements() / product.out / std::max<std::int64_t>(call.samples, 1));
    if (call.variable_gradients[at])
      product.kernel_gradient(call.backend, x, dy, rows, call.variable_gradients[at]);
    if (options_.use_bias && call.variable_gradients[at + 1])
      call.backend.column_sum(dy.reshaped({dy.elements() / product.out, product.out}), rows,
                              call.variable_gradients[at + 1].reshaped({product.out}));
  }

  void separate_backward(const CallContext& call, const Tensor& projected_gradient) const {
    std::array<bool, 3> written{};
    for (const Projection p : k_inputs) {
      const Tensor dy = part(call, projected_gradient, p);
      variable_gradients(call, p, input(call, p), dy);
      const std::size_t i = input_index(call, p);
      if (!call.input_gradients[i]) continue;
      map(call, p).input_gradient(call.backend, dy, kernel(call, p), call.input_gradients[i], written[i]);
      written[i] = true;
    }
  }

  void packed_backward(const CallContext& call, const Tensor& projected_gradient) const {
    const Tensor &kernel = call.scratch[2], &kernel_gradient = call.scratch[3],
                 &bias_gradient = call.scratch[4];
    const LinearMap product = packed_map(call);
    const Tensor& x = call.inputs[0];
    const Leaves rows = call.row_leaves(x.shape[1]);
    if (wants(call, 0)) {
      product.kernel_gradient(call.backend, x, projected_gradient, rows, kernel_gradient);
      pack(call, kernel_gradient, {}, Direction::unpack);
    }
    if (options_.use_bias && wants(call, 1)) {
      call.backend.column_sum(projected_gradient.reshaped({call.samples * x.shape[1], product.out}), rows,
                              bias_gradient);
      pack(call, {}, bias_gradient, Direction::unpack);
    }
    // The whole gradient goes to the first input; the others, which are the same value, add nothing.
    bool written = false;
    for (const Tensor& dx : call.input_gradients) {
      if (!dx) continue;
      if (written) {
        call.backend.fill(dx, 0.0);
      } else {
        pack(call, kernel, {}, Direction::pack);
        product.input_gradient(call.backend, projected_gradient, kernel, dx);
      }
      written = true;
    }
  }
  /// Some gradient of the packed kernels (offset 0) or biases (offset 1) is wanted.
  bool wants(const CallContext& call, std::size_t offset) const {
    return std::any_of(k_inputs.begin(), k_inputs.end(), [&](Projection p) {
      return static_cast<bool>(call.variable_gradients[kernel_index(p) + offset]);
    });
  }

  AttentionOptions options_;
};

}  // namespace

std::unique_ptr<Layer> make_attention(LayerCommon common, AttentionOptions options) {
  return std::make_unique<AttentionLayer>(std::move(common), std::move(options));
}

}  // namespace rankine
