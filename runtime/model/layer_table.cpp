#include <array>

#include "runtime/model/layer.hpp"
#include "runtime/model/layers/kinds.hpp"

namespace rankine {
namespace {

constexpr std::string_view k_keras = "keras.layers";

constexpr auto k_kinds = std::to_array<LayerKind>({
    {"Activation", k_keras, make_activation},
    {"Add", k_keras, make_merge},
    {"Average", k_keras, make_merge},
    {"Concatenate", k_keras, make_concatenate},
    {"Dense", k_keras, make_dense},
    {"Dropout", k_keras, make_dropout},
    {"ELU", k_keras, make_activation_layer},
    {"EinsumDense", k_keras, make_einsum_dense},
    {"Embedding", k_keras, make_embedding},
    {"Flatten", k_keras, make_flatten},
    {"GlobalAveragePooling1D", k_keras, make_global_average_pooling1d},
    {"GroupQueryAttention", k_keras, make_group_query_attention, "GroupedQueryAttention", true},
    {"GroupedQueryAttention", k_keras, make_group_query_attention, "", true},
    {"Identity", k_keras, make_identity},
    {"LayerNormalization", k_keras, make_layer_normalization},
    {"LeakyReLU", k_keras, make_activation_layer},
    {"MultiHeadAttention", k_keras, make_multi_head_attention, "", true},
    {"Multiply", k_keras, make_merge},
    {"Maximum", k_keras, make_extremum},
    {"Minimum", k_keras, make_extremum},
    {"Permute", k_keras, make_permute},
    {"RMSNormalization", k_keras, make_rms_normalization},
    {"ReLU", k_keras, make_activation_layer},
    {"RepeatVector", k_keras, make_repeat_vector},
    {"Reshape", k_keras, make_reshape},
    {"Softmax", k_keras, make_softmax},
    {"Subtract", k_keras, make_merge},
});

}  // namespace

std::span<const LayerKind> layer_kinds() {
  return k_kinds;
}

const LayerKind* find_layer_kind(std::string_view class_name) {
  for (const LayerKind& kind : k_kinds)
    if (kind.class_name == class_name) return &kind;
  return nullptr;
}

}  // namespace rankine
