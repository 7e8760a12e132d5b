#pragma once

#include <span>
#include <vector>

#include "runtime/arithmetic/leaf.hpp"
#include "runtime/arithmetic/row_kernels.hpp"

/// What works along rows, one element at a time and one row a call: what the kernels must equal bit for bit
/// (see row_kernels.hpp, norm_kernels.hpp, loss_kernels.hpp). Arrays come and go as vectors.
namespace rankine::reference {

/// The sum over a row of n whose term i is term(i).
template <class T, class Term>
T row_sum(std::int64_t n, std::int64_t leaf, Term&& term) {
  std::vector<T> waiting;
  for (const LeafStep& step : leaf_steps(Leaves::of(n, leaf))) {
    T lanes[16] = {};
    for (std::int64_t i = step.terms.begin; i < step.terms.end; ++i) {
      T& lane = lanes[(i - step.terms.begin) % 16];
      lane = lane + term(i);
    }
    for (int apart = 8; apart > 0; apart /= 2) {
      for (int i = 0; i < apart; ++i) lanes[i] = lanes[i] + lanes[i + apart];
    }
    for (int f = 0; f < step.folds; ++f) {
      lanes[0] = waiting.back() + lanes[0];
      waiting.pop_back();
    }
    waiting.push_back(lanes[0]);
  }
  return waiting.empty() ? T(0) : waiting.back();
}

template <class T>
std::vector<T> softmax(const std::vector<T>& x, bool log);
template <class T>
std::vector<T> softmax_gradient(const std::vector<T>& y, bool log, const std::vector<T>& dy);

/// A normalised row with its statistics: mean (layer_norm only) and rstd.
template <class T>
struct NormRow {
  std::vector<T> y;
  T mean = 0, rstd = 0;
};
template <class T>
struct NormGradientRow {
  std::vector<T> dx, normalized_dy;
};
/// gamma and beta may be empty.
template <class T>
NormRow<T> layer_norm(const std::vector<T>& x, const std::vector<T>& gamma, const std::vector<T>& beta,
                      T epsilon);
template <class T>
NormGradientRow<T> layer_norm_gradient(const std::vector<T>& x, const std::vector<T>& gamma, T mean, T rstd,
                                       const std::vector<T>& dy);
template <class T>
NormRow<T> rms_norm(const std::vector<T>& x, const std::vector<T>& gamma, T epsilon, bool centre_variance);
template <class T>
NormGradientRow<T> rms_norm_gradient(const std::vector<T>& x, const std::vector<T>& gamma, T rstd,
                                     bool centre_variance, const std::vector<T>& dy);

template <class T>
struct LossRow {
  double loss = 0;
  std::vector<T> dx;
};
template <class T>
LossRow<T> sparse_cross_entropy(const std::vector<T>& x, std::int32_t label, bool from_logits, double scale);
template <class T>
LossRow<T> categorical_cross_entropy(const std::vector<T>& x, const std::vector<T>& targets, bool from_logits,
                                     double label_smoothing, double scale);
template <class T>
LossRow<T> binary_cross_entropy(const std::vector<T>& x, const std::vector<T>& targets, bool from_logits,
                                double label_smoothing, double scale);
template <class T>
LossRow<T> mean_squared_error(const std::vector<T>& x, const std::vector<T>& targets, double scale);
template <class T>
LossRow<T> mean_absolute_error(const std::vector<T>& x, const std::vector<T>& targets, double scale);
template <class T>
LossRow<T> huber(const std::vector<T>& x, const std::vector<T>& targets, double delta, double scale);

}  // namespace rankine::reference
