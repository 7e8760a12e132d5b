#pragma once

#include <memory>
#include <string>

#include "runtime/model/layer.hpp"

namespace rankine {

/// What tells MultiHeadAttention and GroupQueryAttention apart, once their configs are read.
struct AttentionOptions {
  std::int64_t heads = 1;   ///< of the query
  std::int64_t groups = 1;  ///< key and value heads; heads / groups query heads share each
  std::int64_t key_dim = 1, value_dim = 1;
  std::int64_t output_dim = 0;  ///< 0: the query's
  bool use_bias = true;
  bool use_gate = false;    ///< a sigmoid of a fifth projection, of the query, multiplies what was attended
  std::int64_t window = 0;  ///< queries see keys nearer than this; 0: all
  double dropout = 0.0;     ///< of the weights
  WeightRules kernel_rules, bias_rules;
  std::string attribute_prefix;  ///< of the sublayers in a weights file: "query_dense" or "_query_dense"

  std::int64_t heads_per_group() const { return heads / groups; }
  /// Columns of one group in the packed product: its query heads, its key, its value.
  std::int64_t group_width() const { return (heads_per_group() + 1) * key_dim + value_dim; }
};

/// Scaled dot-product attention of (query, value[, key]) with its projections.
std::unique_ptr<Layer> make_attention(LayerCommon common, AttentionOptions options);

}  // namespace rankine
