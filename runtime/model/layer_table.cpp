#include <array>

#include "runtime/model/layer.hpp"
#include "runtime/model/layers/kinds.hpp"

namespace rankine {
namespace {

using enum MaskRule;

constexpr std::string_view k_keras = "keras.layers";
constexpr std::string_view k_nn = "keras.src.ops.nn", k_numpy = "keras.src.ops.numpy";

constexpr auto k_kinds = std::to_array<LayerKind>({
    {"Activation", k_keras, make_activation, passes},
    {"Add", k_keras, make_merge, joins},
    {"Average", k_keras, make_merge, joins},
    {"BatchNormalization", k_keras, make_batch_normalization, weighs},
    {"Concatenate", k_keras, make_concatenate, joins},
    {"Dense", k_keras, make_dense, passes},
    {"Dropout", k_keras, make_dropout, passes},
    {"ELU", k_keras, make_activation_layer, passes},
    {"EinsumDense", k_keras, make_einsum_dense},
    {"Embedding", k_keras, make_embedding},
    {"Flatten", k_keras, make_flatten},
    {"GlobalAveragePooling1D", k_keras, make_global_average_pooling1d, pools},
    {"GroupNormalization", k_keras, make_group_normalization, passes},
    {"GroupQueryAttention", k_keras, make_group_query_attention, attends, "GroupedQueryAttention", true},
    {"GroupedQueryAttention", k_keras, make_group_query_attention, attends, "", true},
    {"Identity", k_keras, make_identity, passes},
    {"LayerNormalization", k_keras, make_layer_normalization, passes},
    {"LeakyReLU", k_keras, make_activation_layer, passes},
    {"Maximum", k_keras, make_extremum, refuses},
    {"Minimum", k_keras, make_extremum, refuses},
    {"MultiHeadAttention", k_keras, make_multi_head_attention, removes, "", true},
    {"Multiply", k_keras, make_merge, refuses},
    {"Permute", k_keras, make_permute},
    {"RMSNormalization", k_keras, make_rms_normalization},
    {"ReLU", k_keras, make_activation_layer, passes},
    {"RepeatVector", k_keras, make_repeat_vector},
    {"Reshape", k_keras, make_reshape},
    {"ReversibleEmbedding", k_keras, make_reversible_embedding, drops, "", false, true},
    {"Softmax", k_keras, make_softmax, refuses},
    {"Subtract", k_keras, make_merge, joins},
});

constexpr auto k_operations = std::to_array<LayerKind>({
    {"Add", k_numpy, make_arithmetic},
    {"Divide", k_numpy, make_arithmetic},
    {"GetItem", k_numpy, make_get_item},
    {"LogicalOr", k_numpy, make_mask_operation},
    {"Matmul", k_numpy, make_matmul},
    {"Maximum", k_numpy, make_arithmetic},
    {"Minimum", k_numpy, make_arithmetic},
    {"Multiply", k_numpy, make_arithmetic},
    {"Negative", k_numpy, make_arithmetic},
    {"NotEqual", k_numpy, make_mask_operation},
    {"Reshape", k_numpy, make_reshape_operation},
    {"Softmax", k_nn, make_softmax_operation},
    {"Subtract", k_numpy, make_arithmetic},
    {"Transpose", k_numpy, make_transpose_operation},
    {"TrueDivide", k_numpy, make_arithmetic},
});

}  // namespace

std::span<const LayerKind> layer_kinds() {
  return k_kinds;
}

std::span<const LayerKind> operation_kinds() {
  return k_operations;
}

const LayerKind* find_layer_kind(std::string_view class_name) {
  for (const LayerKind& kind : k_kinds)
    if (kind.class_name == class_name) return &kind;
  return nullptr;
}

const LayerKind* find_operation_kind(std::string_view module, std::string_view class_name) {
  for (const LayerKind& kind : k_operations)
    if (kind.class_name == class_name && kind.module == module) return &kind;
  return nullptr;
}

}  // namespace rankine
