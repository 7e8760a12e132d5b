#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/compute/backend.hpp"
#include "runtime/model/value.hpp"
#include "runtime/model/variable.hpp"

namespace rankine {

/// A tensor that one call of a layer needs besides its inputs and output. With `per_sample` the batch
/// dimension is put in front of `shape`.
struct TensorSpec {
  Shape shape;
  DType dtype = DType::float32;
  bool per_sample = true;
};

/// What one call of a layer keeps and uses, so that memory can be planned before anything runs.
struct CallPlan {
  std::vector<TensorSpec> saved;             ///< written by forward, read by backward
  std::vector<TensorSpec> forward_scratch;   ///< only during forward
  std::vector<TensorSpec> backward_scratch;  ///< only during backward
  bool backward_reads_inputs = true;
  bool backward_reads_output = false;
  /// The output has the bits of input 0 under another shape (Reshape, Flatten): the executor makes it a view,
  /// and neither forward nor backward is called.
  bool output_is_input = false;
  /// Sums over the whole batch of a step, over the passes of all ranks, that training needs: elements of
  /// each. Those of `forward_sums` are complete before forward, those of `backward_sums` before backward.
  std::vector<std::int64_t> forward_sums, backward_sums;
  /// Variables, in the layer's order, that this call doesn't use: it is given no place for their gradients.
  std::vector<int> idle_variables;
};

/// What a call was given besides tensors, from `inbound_nodes` (or from C++). A stored `training` isn't here:
/// in Keras 3.15 what fit() and evaluate() say goes before it.
struct CallArguments {
  bool use_causal_mask = false;
  bool reverse = false;  ///< from hidden states to logits (ReversibleEmbedding)
};

/// Everything that one call of a layer sees while it runs. Tensors have the batch dimension of the pass in
/// front. A pass holds one aligned subtree of the step's leaves of samples.
struct CallContext {
  Backend& backend;
  std::int64_t samples = 0;       ///< in this pass
  std::int64_t first_sample = 0;  ///< its place in the step's global batch
  std::int64_t step = 0;
  std::uint64_t seed = 0;
  std::uint32_t call = 0;  ///< number of this call in the graph, for random numbers
  bool training = false;
  BatchLeaves batch;
  CallArguments arguments;

  std::span<const Tensor> inputs;
  Tensor output;
  /// Of kinds that use masks: for each input its mask, int32 with one entry a row, absent where it has none;
  /// after them attention's mask of pairs, if it was given one.
  std::span<const Tensor> masks;
  std::span<const Tensor> variables;  ///< in the layer's order
  std::span<const Tensor> saved;
  std::span<const Tensor> scratch;  ///< forward_scratch or backward_scratch
  /// In training, the batch's sums, of the layer's dtype: the plan's forward_sums and backward_sums.
  std::span<const Tensor> sums;

  // Backward only. To be overwritten; an absent one isn't wanted. Gradients of variables are sums over this
  // pass.
  Tensor output_gradient;
  std::span<const Tensor> input_gradients;
  std::span<const Tensor> variable_gradients;

  Tensor mask(std::size_t input) const { return input < masks.size() ? masks[input] : Tensor{}; }
  /// The cut of all rows of a tensor with `rows` rows a sample.
  Leaves row_leaves(std::int64_t rows) const { return batch.rows(samples, rows); }
};

/// Declares a layer's variables while it is built.
class VariableBuilder {
 public:
  virtual ~VariableBuilder() = default;
  /// `group` is "" or the attribute path of a sublayer in the weights file with the sublayer's own name
  /// ({"query_dense", "query"}); variables of one group are numbered in the order of their declaration.
  struct Group {
    std::string attribute;  ///< in the structural path
    std::string name;       ///< in the path for people
  };
  virtual void add(const Group& group, const std::string& name, const Shape& shape, WeightRules rules,
                   Fans fans, bool trainable) = 0;
};

/// What every Keras layer config holds.
struct LayerCommon {
  std::string class_name;  ///< as in the config
  std::string name;
  DType dtype = DType::float32;
  bool trainable = true;
};

/// A kind of layer with its hyper-parameters. A layer object has no tensors and no state: it says what
/// variables it has and computes on what it is given, so one object serves every call.
class Layer {
 public:
  explicit Layer(LayerCommon common) : common_(std::move(common)) {}
  virtual ~Layer() = default;
  const LayerCommon& common() const { return common_; }
  const std::string& name() const { return common_.name; }

  /// Checks the inputs of the first call and declares the variables. Throws ConfigError naming the layer.
  virtual void build(std::span<const ValueSpec> inputs, VariableBuilder& variables) const {
    (void)inputs;
    (void)variables;
  }
  /// Attribute paths under which the weights file has a `vars` group without datasets (Keras writes them for
  /// sublayers without weights, e.g. "_softmax").
  virtual std::vector<std::pair<std::string, std::string>> empty_groups() const { return {}; }
  /// The output's shape and dtype. Throws ConfigError naming the layer.
  virtual ValueSpec output(std::span<const ValueSpec> inputs) const = 0;
  /// Whether what this call makes of its ids is masked where an id is 0.
  virtual bool masks_zero(const CallArguments& arguments) const {
    (void)arguments;
    return false;
  }
  virtual CallPlan plan(std::span<const ValueSpec> inputs, const CallArguments& arguments) const = 0;
  /// Refuses masked inputs of a kind that weighs by masks.
  virtual void expect_maskable(std::span<const ValueSpec> inputs) const { (void)inputs; }
  /// Writes this pass's share of the batch's sum number `sum`; those before it are complete. The context is
  /// that of forward or backward, without gradients of variables.
  virtual void add_to_sum(const CallContext& call, std::size_t sum, const Tensor& share) const {
    (void)call, (void)sum, (void)share;
  }
  /// Once a step, after the optimizer's update, of a call with sums: changes what isn't trained. The context
  /// has no tensors but `variables` and `sums`.
  virtual void after_update(const CallContext& call) const { (void)call; }
  virtual void forward(const CallContext& call) const = 0;
  virtual void backward(const CallContext& call) const = 0;

 private:
  LayerCommon common_;
};

/// What a kind of layer does with masks. A mask goes with a value and says which of its rows count: Keras's
/// `_keras_mask`. Layers whose masks_zero() holds make one.
enum class MaskRule : std::uint8_t {
  drops,    ///< the output has none
  passes,   ///< the output has the first input's
  joins,    ///< the output's rows count where any input's do, if all inputs have a mask
  pools,    ///< CallContext::masks; the output has none
  weighs,   ///< CallContext::masks; the output has the first input's
  attends,  ///< CallContext::masks; the output has the first input's
  removes,  ///< as attends; and later calls see no mask of its inputs, as Keras takes them away
  refuses,  ///< what Keras computes for masked inputs isn't here
};

/// One row of the table of layers and operations.
struct LayerKind {
  std::string_view class_name;  ///< in configs
  std::string_view module;      ///< "keras.layers", or the module of an operation (operation.hpp)
  std::unique_ptr<Layer> (*make)(LayerCommon common, const nlohmann::json& config);
  MaskRule masks = MaskRule::drops;
  /// The Python class, which names the layer's group in weights files, where it isn't `class_name`.
  std::string_view python_class{};
  /// Called as layer(query, value[, key]) and may be given use_causal_mask; others take one tensor or one
  /// list.
  bool is_attention = false;
  bool is_reversible = false;  ///< may be given reverse
};
/// Every kind of layer that Rankine computes, then every operation. Help texts, checks and the refusal of
/// others follow from them.
std::span<const LayerKind> layer_kinds();
std::span<const LayerKind> operation_kinds();
/// The kind of a layer's class in configs, or nullptr.
const LayerKind* find_layer_kind(std::string_view class_name);
/// The kind of an operation, or nullptr.
const LayerKind* find_operation_kind(std::string_view module, std::string_view class_name);

}  // namespace rankine
