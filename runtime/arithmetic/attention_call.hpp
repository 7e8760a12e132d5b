#pragma once

#include <cstdint>

#include "runtime/dtype.hpp"

namespace rankine {

/// Scaled dot-product attention of one call. Element (sample s, position t, group g, head j of the group,
/// feature d) of q lies at q + ((s * query_length + t) * q_row + g * q_group + j * q_head + d); k and v have
/// one head a group, at (s * key_length + t) * row + g * group + d. Query head h of Keras is group h /
/// heads_per_group, j = h % heads_per_group. `output` is [samples * query_length, groups * heads_per_group *
/// value_dim]. Softmax of scale * (q . k) over all keys, or over keys t' <= t when causal. Blocks of queries
/// at a time: memory is linear in the lengths.
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
