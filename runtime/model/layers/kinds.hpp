#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "runtime/model/layer.hpp"

namespace rankine {

// One maker a kind of layer, each in a file of its own; layer_table.cpp lists them by Keras's class names.
std::unique_ptr<Layer> make_activation(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_activation_layer(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_batch_normalization(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_concatenate(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_dense(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_dropout(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_einsum_dense(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_embedding(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_extremum(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_flatten(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_global_average_pooling1d(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_group_normalization(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_group_query_attention(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_identity(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_layer_normalization(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_merge(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_multi_head_attention(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_permute(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_repeat_vector(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_reshape(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_reversible_embedding(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_rms_normalization(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_softmax(LayerCommon common, const nlohmann::json& config);

// Operations, from operation_config.
std::unique_ptr<Layer> make_arithmetic(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_get_item(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_mask_operation(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_matmul(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_reshape_operation(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_softmax_operation(LayerCommon common, const nlohmann::json& config);
std::unique_ptr<Layer> make_transpose_operation(LayerCommon common, const nlohmann::json& config);

}  // namespace rankine
