#pragma once

#include <cstdint>

#include "runtime/arithmetic/dropout_mask.hpp"
#include "runtime/dtype.hpp"

namespace rankine {

/// Scaled dot-product attention of one call. Element (sample s, position t, group g, head j of the group,
/// feature d) of q lies at q + ((s * query_length + t) * q_row + g * q_group + j * q_head + d); k and v have
/// one head a group, at (s * key_length + t) * row + g * group + d. Query head h of Keras is group h /
/// heads_per_group, j = h % heads_per_group. `output` is [samples * query_length, groups * heads_per_group *
/// value_dim]. Softmax of scale * (q . k) over all keys, or over keys t' <= t when causal. Blocks of queries
/// at a time: memory is linear in the lengths. A query that sees no key at all takes the mean of all values,
/// as the softmax of equal scores does, or nothing.
struct Attention {
  DType dtype = DType::float32;
  std::int64_t samples = 0, query_length = 0, key_length = 0;
  std::int64_t groups = 0, heads_per_group = 1, head_dim = 0, value_dim = 0;
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  std::int64_t q_row = 0, q_group = 0, q_head = 0;
  std::int64_t k_row = 0, k_group = 0;
  std::int64_t v_row = 0, v_group = 0;
  double scale = 1.0;
  bool causal = false;
  std::int64_t window = 0;  ///< query t sees keys t' with |t - t'| < window only; 0: no such limit
  /// int32, 0 for a query that sees nothing, [samples, query_length], for a key that nobody sees, [samples,
  /// key_length], and for a query that doesn't see a key, [samples, query_length, key_length]; or absent.
  const void *query_mask = nullptr, *key_mask = nullptr, *pair_mask = nullptr;
  bool blind_is_zero = false;  ///< what a query that sees no key takes: 0 instead of the mean
  /// Applied to the softmax's weights. That of key t' for query t of Keras's head h is element (h *
  /// query_length + t) * row + t' of its sample, where row is key_length rounded up to 4.
  DropoutMask dropout;
  /// What backward needs besides q, k, v: [samples, groups * heads_per_group, query_length, 2], maximum and
  /// sum of each row's softmax.
  void* statistics = nullptr;
  void* output = nullptr;
};

/// Gradients of an Attention; dq, dk, dv are laid out as q, k, v are.
struct AttentionGradient {
  const void* output_gradient = nullptr;
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;
};

}  // namespace rankine
