#include <array>

#include "runtime/model/layer.hpp"
#include "runtime/model/layers/kinds.hpp"

namespace rankine {
namespace {

constexpr std::string_view k_keras = "keras.layers";

constexpr auto k_kinds = std::to_array<LayerKind>({
    {"Activation", k_keras, make_activation},
    {"Concatenate", k_keras, make_concatenate},
    {"Dense", k_keras, make_dense},
    {"Dropout", k_keras, make_dropout},
    {"ELU", k_keras, make_activation_layer},
    {"Embedding", k_keras, make_embedding},
    {"Flatten", k_keras, make_flatten},
    {"GlobalAveragePooling1D", k_keras, make_global_average_pooling1d},
    {"Identity", k_keras, make_identity},
    {"LayerNormalization", k_keras, make_layer_normalization},
    {"LeakyReLU", k_keras, make_activation_layer},
    {"Permute", k_keras, make_permute},
    {"RMSNormalization", k_keras, make_rms_normalization},
    {"ReLU", k_keras, make_activation_layer},
    {"Reshape", k_keras, make_reshape},
    {"Softmax", k_keras, make_softmax},
});

}  // namespace

std::span<const LayerKind> layer_kinds() {
  return k_kinds;
}

}  // namespace rankine
