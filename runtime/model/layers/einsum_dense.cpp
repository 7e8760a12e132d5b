#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/model/config_reader.hpp"
#include "runtime/model/layers/broadcast.hpp"
#include "runtime/model/layers/checks.hpp"
#include "runtime/model/layers/einsum.hpp"
#include "runtime/model/layers/kinds.hpp"
#include "runtime/model/layers/product_activation.hpp"
#include "runtime/model/layers/rows.hpp"

namespace rankine {
namespace {

/// Where a call finds its scratch: an index for each tensor that it needs, -1 for the others.
struct Scratch {
  /// Of one sum over repeated dimensions.
  struct Sum {
    int result = -1, ones = -1, between = -1;
  };
  int x = -1, w = -1, y = -1, bias = -1, dx = -1, dw = -1, summed_input_gradient = -1;
  Sum input_sum, bias_sum;
  std::vector<TensorSpec> specs;

  void add(int& place, Shape shape, DType dtype, bool per_sample) {
    place = static_cast<int>(specs.size());
    specs.push_back({std::move(shape), dtype, per_sample});
  }
  void add(Sum& places, const BroadcastSum& sum, Shape result, DType dtype) {
    add(places.result, std::move(result), dtype, true);
    add(places.ones, {sum.ones()}, dtype, false);
    places.between = static_cast<int>(specs.size());
    for (const std::int64_t elements : sum.between()) specs.push_back({{elements}, dtype, true});
  }
};

/// activation(einsum(equation, x, kernel) + bias) as one matrix product. A tensor that doesn't lie in memory
/// as the product wants it is permuted; the usual equations need none of that.
class EinsumDense final : public Layer {
 public:
  EinsumDense(LayerCommon layer_common, const nlohmann::json& config) : Layer(std::move(layer_common)) {
    ConfigReader reader(config, layer_label(common()));
    equation_ = EinsumEquation::parse(reader.required<std::string>("equation"), layer_label(common()));
    read_output_shape(reader);
    if (const auto* activation = reader.raw("activation"))
      activation_ = activation_from_config(*activation, layer_label(common()));
    bias_axes_ = reader.optional<std::string>("bias_axes").value_or("");
    kernel_rules_ = reader.weight("kernel", "glorot_uniform");
    bias_rules_ = reader.weight("bias", "zeros");
    reader.finish();
    check_bias_axes(reader);
  }

  void build(std::span<const ValueSpec> inputs, VariableBuilder& variables) const override {
    const EinsumProduct p = product(inputs[0].shape, 1);
    Fans fans{1.0, 1.0};
    for (const char label : equation_.kernel)
      (equation_.output.find(label) == std::string::npos ? fans.in : fans.out) *=
          static_cast<double>(p.sizes.at(label));
    variables.add({}, "kernel", p.shape(equation_.kernel), kernel_rules_, fans, common().trainable);
    if (bias_axes_.empty()) return;
    const Shape bias = bias_shape(p);
    variables.add({}, "bias", bias, bias_rules_, fans_of(bias), common().trainable);
  }

  ValueSpec output(std::span<const ValueSpec> inputs) const override {
    const Shape& x = one_floating_input(common(), inputs).shape;
    const EinsumProduct p = product(x, 1);
    return {activation_.output(p.shape(p.output.substr(1)), layer_label(common())), common().dtype};
  }

  CallPlan plan(std::span<const ValueSpec> inputs, const CallArguments&) const override {
    const EinsumProduct p = product(inputs[0].shape, 1);
    CallPlan plan;
    plan.forward_scratch = forward_scratch(p).specs;
    plan.backward_scratch = backward_scratch(p).specs;
    after(p).add_to(plan);
    return plan;
  }

  void forward(const CallContext& call) const override {
    const EinsumProduct p = product(sample_shape(call.inputs[0]), call.samples);
    const Scratch places = forward_scratch(p);
    const ProductActivation after = this->after(p);
    const Tensor target = after.product(call);
    const Tensor x = arranged(call, product_input(call, p, places), p.x, places.x);
    const Tensor w = arranged(call, call.variables[0], p.w, places.w);
    const Tensor y = p.y.permuted() ? scratch(call, places.y) : target;
    const bool bias_in_product = !bias_axes_.empty() && bias_fits(p);
    call.backend.gemm({.dtype = common().dtype,
                       .transpose_b = p.w.transposed,
                       .m = p.m,
                       .n = p.n,
                       .k = p.k,
                       .a = x.data,
                       .lda = p.x.leading,
                       .b = w.data,
                       .ldb = p.w.leading,
                       .c = y.data,
                       .ldc = p.y.leading,
                       .k_leaves = p.k_leaves,
                       .bias = bias_in_product ? call.variables[1].data : nullptr,
                       .batch = p.batch,
                       .stride_a = p.x.stride,
                       .stride_b = p.w.stride,
                       .stride_c = p.y.stride});
    if (p.y.permuted()) put_back(call, y, p.y, p.shape(p.output), target);
    if (!bias_axes_.empty() && !bias_in_product) add_bias(call, p, places, target);
    after.finish(call);
  }

  void backward(const CallContext& call) const override {
    const EinsumProduct p = product(sample_shape(call.inputs[0]), call.samples);
    const Scratch places = backward_scratch(p);
    const Tensor output_gradient = after(p).gradient(call);
    const Tensor dy = arranged(call, output_gradient, p.y, places.y);
    if (call.variable_gradients[0]) kernel_gradient(call, p, places, dy);
    if (!bias_axes_.empty() && call.variable_gradients[1]) bias_gradient(call, p, places, output_gradient);
    if (call.input_gradients[0]) input_gradient(call, p, places, dy);
  }

 private:
  // ---- config

  void read_output_shape(ConfigReader& reader) {
    const nlohmann::json* shape = reader.raw("output_shape");
    if (shape == nullptr) reader.refuse("lacks the key 'output_shape'");
    const nlohmann::json list = shape->is_array() ? *shape : nlohmann::json::array({*shape});
    for (const nlohmann::json& size : list) {
      if (!size.is_null() && !size.is_number_integer())
        reader.refuse("has an output_shape that isn't a list of integers and nulls");
      output_sizes_.push_back(size.is_null() ? std::nullopt : std::optional(size.get<std::int64_t>()));
    }
  }

  void check_bias_axes(const ConfigReader& reader) const {
    for (const char label : bias_axes_) {
      const std::size_t at = equation_.output.find(label);
      if (at == std::string::npos)
        reader.refuse(std::string("has the bias axis ") + label +
                      ", which isn't in the output of its equation");
      if (at == 0 && equation_.elided != EinsumEquation::Elided::left)
        reader.refuse(std::string("has the bias axis ") + label +
                      ", the batch's; a bias can't depend on samples");
    }
  }

  // ---- shapes

  EinsumProduct product(const Shape& x, std::int64_t samples) const {
    const EinsumEquation equation = equation_.expanded(x.rank() + 1, layer_label(common()));
    std::map<char, std::int64_t> sizes{{equation.input[0], samples}};
    for (int d = 0; d < x.rank(); ++d) sizes[equation.input[static_cast<std::size_t>(d) + 1]] = x[d];
    // Keras's output_shape is that of the labels written out, without the batch.
    const std::string named =
        equation_.output.substr(equation_.elided == EinsumEquation::Elided::left ? 0 : 1);
    if (named.size() != output_sizes_.size())
      refuse_layer(common(), "has an output_shape of " + std::to_string(output_sizes_.size()) +
                                 " sizes but an equation with " + std::to_string(named.size()) +
                                 " output labels besides the batch");
    for (std::size_t i = 0; i < named.size(); ++i) {
      const std::optional<std::int64_t> size = output_sizes_[i];
      const auto known = sizes.find(named[i]);
      if (known == sizes.end() && !size)
        refuse_layer(common(), std::string("has no size in output_shape for the label ") + named[i]);
      if (known != sizes.end() && size && *size != known->second)
        refuse_layer(common(), "has " + std::to_string(*size) + " in output_shape for the label " + named[i] +
                                   ", which is " + std::to_string(known->second) + " in its input of shape " +
                                   x.to_string());
      if (size && *size < 1) refuse_layer(common(), "has a size below 1 in output_shape");
      if (known == sizes.end()) sizes[named[i]] = *size;
    }
    return EinsumProduct::of(equation, std::move(sizes));
  }

  ProductActivation after(const EinsumProduct& p) const {
    return {activation_, p.shape(p.output.substr(1)), common().dtype};
  }

  /// Output labels from the first one with a bias on.
  std::string bias_labels(const EinsumProduct& p) const {
    std::size_t first = p.output.size();
    for (const char label : bias_axes_) first = std::min(first, p.output.find(label));
    return p.output.substr(first);
  }
  Shape bias_shape(const EinsumProduct& p) const {
    Shape shape = p.shape(bias_labels(p));
    const std::string labels = bias_labels(p);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (bias_axes_.find(labels[i]) == std::string::npos) shape[static_cast<int>(i)] = 1;
    }
    return shape;
  }
  bool bias_repeats(const EinsumProduct& p) const { return bias_shape(p) != p.shape(bias_labels(p)); }
  /// The bias is a bias of the product's columns.
  bool bias_fits(const EinsumProduct& p) const {
    return !bias_repeats(p) && !p.y.permuted() && p.batch == 1 && bias_shape(p).elements() == p.n &&
           bias_labels(p).find_first_of(p.input) == std::string::npos;
  }

  // ---- memory

  Scratch common_scratch(const EinsumProduct& p) const {
    Scratch s;
    const Shape x = p.shape(p.input.substr(1));
    if (p.sums_input()) s.add(s.input_sum, input_sum(p), x, common().dtype);
    if (p.x.permuted()) s.add(s.x, x, common().dtype, true);
    if (p.w.permuted()) s.add(s.w, p.shape(p.kernel), common().dtype, false);
    if (p.y.permuted()) s.add(s.y, p.shape(p.output.substr(1)), common().dtype, true);
    return s;
  }
  Scratch forward_scratch(const EinsumProduct& p) const {
    Scratch s = common_scratch(p);
    if (!bias_axes_.empty() && bias_repeats(p)) s.add(s.bias, p.shape(bias_labels(p)), common().dtype, false);
    return s;
  }
  Scratch backward_scratch(const EinsumProduct& p) const {
    Scratch s = common_scratch(p);
    if (p.x.permuted()) s.add(s.dx, p.shape(p.input.substr(1)), common().dtype, true);
    if (p.w.permuted()) s.add(s.dw, p.shape(p.kernel), common().dtype, false);
    if (p.sums_input()) s.add(s.summed_input_gradient, p.shape(p.input.substr(1)), common().dtype, true);
    if (!bias_axes_.empty() && bias_repeats(p)) s.add(s.bias_sum, bias_sum(p), bias_shape(p), common().dtype);
    return s;
  }
  static Tensor scratch(const CallContext& call, int place) {
    return call.scratch[static_cast<std::size_t>(place)];
  }

  /// A tensor as the product reads it.
  static Tensor arranged(const CallContext& call, const Tensor& x, const EinsumOperand& operand, int place) {
    if (!operand.permuted()) return x;
    Shape shape = x.shape;
    for (int d = 0; d < shape.rank(); ++d) shape[d] = x.shape[operand.order[static_cast<std::size_t>(d)]];
    const Tensor y = scratch(call, place).reshaped(shape);
    call.backend.permute(x, operand.order, y);
    return y;
  }
  /// The way back of `arranged` for a tensor of shape `shape`.
  static void put_back(const CallContext& call, const Tensor& from, const EinsumOperand& operand,
                       const Shape& shape, const Tensor& to) {
    Shape arranged = shape;
    std::vector<int> back(operand.order.size());
    for (std::size_t d = 0; d < back.size(); ++d) {
      arranged[static_cast<int>(d)] = shape[operand.order[d]];
      back[static_cast<std::size_t>(operand.order[d])] = static_cast<int>(d);
    }
    call.backend.permute(from.reshaped(arranged), back, to.reshaped(shape));
  }

  // ---- sums inside a sample

  /// A sample's input with size 1 along the labels that are summed first.
  static Shape once(const EinsumProduct& p) {
    Shape shape = p.shape(p.whole_input.substr(1));
    for (int d = 0; d < shape.rank(); ++d) {
      if (p.input.find(p.whole_input[static_cast<std::size_t>(d) + 1]) == std::string::npos) shape[d] = 1;
    }
    return shape;
  }
  static BroadcastSum input_sum(const EinsumProduct& p) {
    return {p.shape(p.whole_input.substr(1)), once(p)};
  }
  /// From a sample's output to what its bias adds.
  BroadcastSum bias_sum(const EinsumProduct& p) const {
    const Shape output = p.shape(p.output.substr(1)), bias = bias_shape(p);
    Shape once = output;
    for (int d = 0; d < once.rank(); ++d) {
      const int at = d - (once.rank() - bias.rank());
      once[d] = at < 0 ? 1 : bias[at];
    }
    return {output, once};
  }
  static Tensor sum(const CallContext& call, const BroadcastSum& sum, const Tensor& from,
                    const Scratch::Sum& places) {
    const Tensor result = scratch(call, places.result);
    sum.run(call.backend, from, result, call.samples,
            call.scratch.subspan(static_cast<std::size_t>(places.between)), scratch(call, places.ones));
    return result;
  }
  static Tensor product_input(const CallContext& call, const EinsumProduct& p, const Scratch& places) {
    return p.sums_input() ? sum(call, input_sum(p), call.inputs[0], places.input_sum) : call.inputs[0];
  }

  // ---- bias

  void add_bias(const CallContext& call, const EinsumProduct& p, const Scratch& places,
                const Tensor& y) const {
    Tensor bias = call.variables[1];
    if (places.bias >= 0) {
      const Tensor whole = scratch(call, places.bias);
      broadcast(call.backend, bias, whole);
      bias = whole;
    }
    const Tensor rows = bias_rows(y, p);
    call.backend.add_bias(rows, bias.reshaped({rows.shape[1]}), rows);
  }

  void bias_gradient(const CallContext& call, const EinsumProduct& p, const Scratch& places,
                     const Tensor& dy) const {
    const Tensor& gradient = call.variable_gradients[1];
    const std::int64_t columns = gradient.elements();
    const Tensor terms = bias_repeats(p) ? sum(call, bias_sum(p), dy, places.bias_sum) : dy;
    const std::int64_t rows = terms.elements() / columns;
    call.backend.column_sum(terms.reshaped({rows, columns}),
                            call.row_leaves(rows / std::max<std::int64_t>(call.samples, 1)),
                            gradient.reshaped({columns}));
  }

  Tensor bias_rows(const Tensor& y, const EinsumProduct& p) const {
    const std::int64_t columns = p.shape(bias_labels(p)).elements();
    return y.reshaped({y.elements() / columns, columns});
  }

  // ---- gradients of the product

  void kernel_gradient(const CallContext& call, const EinsumProduct& p, const Scratch& places,
                       const Tensor& dy) const {
    const Tensor x = arranged(call, product_input(call, p, places), p.x, places.x);
    const Tensor& gradient = call.variable_gradients[0];
    const Tensor dw = p.w.permuted() ? scratch(call, places.dw) : gradient;
    Gemm product{.dtype = common().dtype, .transpose_a = true, .k = p.m, .c = dw.data, .ldc = p.w.leading};
    product.k_leaves = call.row_leaves(p.rows_per_sample);
    product.batch = p.batch;
    product.stride_c = p.w.stride;
    // A kernel stored as [columns, contracted] gets the transposed product: the same sums.
    product.m = p.w.transposed ? p.n : p.k;
    product.n = p.w.transposed ? p.k : p.n;
    product.a = p.w.transposed ? dy.data : x.data;
    product.lda = p.w.transposed ? p.y.leading : p.x.leading;
    product.stride_a = p.w.transposed ? p.y.stride : p.x.stride;
    product.b = p.w.transposed ? x.data : dy.data;
    product.ldb = p.w.transposed ? p.x.leading : p.y.leading;
    product.stride_b = p.w.transposed ? p.x.stride : p.y.stride;
    call.backend.gemm(product);
    if (p.w.permuted()) put_back(call, dw, p.w, p.shape(p.kernel), gradient);
  }

  void input_gradient(const CallContext& call, const EinsumProduct& p, const Scratch& places,
                      const Tensor& dy) const {
    const Tensor w = arranged(call, call.variables[0], p.w, places.w);
    const Tensor& whole = call.input_gradients[0];
    const Tensor gradient = p.sums_input() ? scratch(call, places.summed_input_gradient) : whole;
    const Tensor dx = p.x.permuted() ? scratch(call, places.dx) : gradient;
    call.backend.gemm({.dtype = common().dtype,
                       .transpose_b = !p.w.transposed,
                       .m = p.m,
                       .n = p.k,
                       .k = p.n,
                       .a = dy.data,
                       .lda = p.y.leading,
                       .b = w.data,
                       .ldb = p.w.leading,
                       .c = dx.data,
                       .ldc = p.x.leading,
                       .k_leaves = p.n_leaves,
                       .batch = p.batch,
                       .stride_a = p.y.stride,
                       .stride_b = p.w.stride,
                       .stride_c = p.x.stride});
    if (p.x.permuted()) put_back(call, dx, p.x, p.shape(p.input), gradient);
    if (p.sums_input()) broadcast(call.backend, gradient.reshaped(once(p).with_leading(call.samples)), whole);
  }

  EinsumEquation equation_;
  std::vector<std::optional<std::int64_t>> output_sizes_;
  std::string bias_axes_;
  Activation activation_;
  WeightRules kernel_rules_, bias_rules_;
};

}  // namespace

std::unique_ptr<Layer> make_einsum_dense(LayerCommon common, const nlohmann::json& config) {
  return std::make_unique<EinsumDense>(std::move(common), config);
}

}  // namespace rankine
