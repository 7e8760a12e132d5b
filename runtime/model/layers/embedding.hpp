#pragma once

#include <span>

#include "runtime/model/layer.hpp"

namespace rankine {

// Rows of a table [input_dim, output_dim], looked up by integer ids: Embedding and one way of
// ReversibleEmbedding.

ValueSpec looked_up(const LayerCommon& common, std::span<const ValueSpec> inputs, std::int64_t output_dim);
/// output = rows of `table`. Throws DataError naming the layer and the first id out of range.
void look_up(const LayerCommon& common, const CallContext& call, const Tensor& table);
void look_up_gradient(const CallContext& call, const Tensor& table_gradient);

}  // namespace rankine
