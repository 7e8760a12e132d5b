#pragma once

#include <vector>

#include "runtime/arithmetic/attention_call.hpp"
#include "runtime/arithmetic/gemm_call.hpp"

/// The arithmetic's definition, word for word and slow: what every kernel must equal bit for bit (a NaN
/// equals any NaN). Tests compare against it.
namespace rankine::reference {

/// The value of a sum whose term i adds to a chain by `step(i, chain)`: chains of leaves from +0, folded as
/// leaf_steps says. No terms give +0.
template <class T, class Step>
T leaf_sum(const Leaves& leaves, Step&& step) {
  std::vector<T> stack;
  for (const LeafStep& leaf : leaf_steps(leaves)) {
    T acc = 0;
    for (std::int64_t i = leaf.terms.begin; i < leaf.terms.end; ++i) acc = step(i, acc);
    for (int f = 0; f < leaf.folds; ++f) {
      acc = stack.back() + acc;
      stack.pop_back();
    }
    stack.push_back(acc);
  }
  return stack.empty() ? T(0) : stack.back();
}

template <class T>
void gemm(const Gemm& product);
/// runtime/arithmetic/attention.hpp has the definition.
template <class T>
void attention(const Attention& call);
template <class T>
void attention_gradient(const Attention& call, const AttentionGradient& gradient);

}  // namespace rankine::reference
