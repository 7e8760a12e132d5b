#include "runtime/arithmetic/row_reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/arithmetic/scalar_functions.hpp"

namespace rankine::reference {
namespace {

template <class T>
std::int64_t size(const std::vector<T>& x) {
  return static_cast<std::int64_t>(x.size());
}
template <class T>
T at(const std::vector<T>& x, std::int64_t i) {
  return x[static_cast<std::size_t>(i)];
}
/// {f(0), f(1), ...}
template <class T, class F>
std::vector<T> row_of(std::int64_t n, F&& f) {
  std::vector<T> row;
  for (std::int64_t i = 0; i < n; ++i) row.push_back(f(i));
  return row;
}

template <class T>
T largest(const std::vector<T>& x) {
  T most = -std::numeric_limits<T>::infinity();
  for (const T v : x) most = v > most ? v : most;
  return most;
}
template <class T>
std::vector<T> exponentials(const std::vector<T>& x) {
  const T m = largest(x);
  return row_of<T>(size(x), [&](std::int64_t i) { return exp(at(x, i) - m); });
}
template <class T>
T sum_of(const std::vector<T>& x, std::int64_t leaf) {
  return row_sum<T>(size(x), leaf, [&](std::int64_t i) { return at(x, i); });
}
template <class T, class Term>
T mean(std::int64_t n, Term&& term) {
  return row_sum<T>(n, k_row_sum_leaf, term) / static_cast<T>(n);
}
template <class T>
T mean_of(const std::vector<T>& x) {
  return mean<T>(size(x), [&](std::int64_t i) { return at(x, i); });
}
template <class T>
T reciprocal_root(const std::vector<T>& x, T centre, T epsilon) {
  const T variance =
      mean<T>(size(x), [&](std::int64_t i) { return (at(x, i) - centre) * (at(x, i) - centre); });
  return T(1) / std::sqrt(variance + epsilon);
}
template <class T>
std::vector<T> scaled(const std::vector<T>& h, const std::vector<T>& gamma, const std::vector<T>& beta) {
  return row_of<T>(size(h), [&](std::int64_t i) {
    T y = at(h, i);
    if (!gamma.empty()) y = y * at(gamma, i);
    if (!beta.empty()) y = y + at(beta, i);
    return y;
  });
}
template <class T>
std::vector<T> normalized(const std::vector<T>& x, T centre, T rstd) {
  return row_of<T>(size(x), [&](std::int64_t i) { return (at(x, i) - centre) * rstd; });
}

template <class T>
std::vector<T> smoothed(const std::vector<T>& targets, double smoothing, T spread) {
  if (smoothing == 0) return targets;
  return row_of<T>(size(targets),
                   [&](std::int64_t i) { return at(targets, i) * static_cast<T>(1.0 - smoothing) + spread; });
}
template <class T>
T keep_off_ends(T p) {
  return clip(p, T(1e-7), T(1.0 - 1e-7));
}
template <class T>
T off_ends_slope(T p) {
  return clip_slope(p, T(1e-7), T(1.0 - 1e-7));
}

}  // namespace

template <class T>
std::vector<T> softmax(const std::vector<T>& x, bool as_log) {
  const std::vector<T> e = exponentials(x);
  const T sum = sum_of(e, k_row_sum_leaf), m = largest(x);
  if (as_log) return row_of<T>(size(x), [&](std::int64_t i) { return (at(x, i) - m) - log(sum); });
  return row_of<T>(size(x), [&](std::int64_t i) { return at(e, i) * (T(1) / sum); });
}

template <class T>
std::vector<T> softmax_gradient(const std::vector<T>& y, bool as_log, const std::vector<T>& dy) {
  if (as_log) {
    const T sum = sum_of(dy, k_row_sum_leaf);
    return row_of<T>(size(y), [&](std::int64_t i) { return at(dy, i) - exp(at(y, i)) * sum; });
  }
  const T sum = row_sum<T>(size(y), k_row_sum_leaf, [&](std::int64_t i) { return at(y, i) * at(dy, i); });
  return row_of<T>(size(y), [&](std::int64_t i) { return at(y, i) * (at(dy, i) - sum); });
}

template <class T>
NormRow<T> layer_norm(const std::vector<T>& x, const std::vector<T>& gamma, const std::vector<T>& beta,
                      T epsilon) {
  const T centre = mean_of(x), rstd = reciprocal_root(x, centre, epsilon);
  return {scaled(normalized(x, centre, rstd), gamma, beta), centre, rstd};
}

template <class T>
NormRow<T> rms_norm(const std::vector<T>& x, const std::vector<T>& gamma, T epsilon, bool centre_variance) {
  const T rstd = reciprocal_root(x, centre_variance ? mean_of(x) : T(0), epsilon);
  return {scaled(normalized(x, T(0), rstd), gamma, {}), T(0), rstd};
}

template <class T>
NormGradientRow<T> layer_norm_gradient(const std::vector<T>& x, const std::vector<T>& gamma, T centre, T rstd,
                                       const std::vector<T>& dy) {
  const std::vector<T> h = normalized(x, centre, rstd), g = scaled(dy, gamma, {});
  const T mean_g = mean_of(g);
  const T mean_gh = mean<T>(size(x), [&](std::int64_t i) { return at(g, i) * at(h, i); });
  return {
      row_of<T>(size(x), [&](std::int64_t i) { return rstd * ((at(g, i) - mean_g) - at(h, i) * mean_gh); }),
      row_of<T>(size(x), [&](std::int64_t i) { return at(dy, i) * at(h, i); })};
}

template <class T>
NormGradientRow<T> rms_norm_gradient(const std::vector<T>& x, const std::vector<T>& gamma, T rstd,
                                     bool centre_variance, const std::vector<T>& dy) {
  const std::vector<T> h = normalized(x, T(0), rstd), g = scaled(dy, gamma, {});
  const std::vector<T> c = normalized(x, centre_variance ? mean_of(x) : T(0), rstd);
  const T mean_gh = mean<T>(size(x), [&](std::int64_t i) { return at(g, i) * at(h, i); });
  return {row_of<T>(size(x), [&](std::int64_t i) { return rstd * (at(g, i) - at(c, i) * mean_gh); }),
          row_of<T>(size(x), [&](std::int64_t i) { return at(dy, i) * at(h, i); })};
}

template <class T>
LossRow<T> sparse_cross_entropy(const std::vector<T>& x, std::int32_t label, bool from_logits, double scale) {
  const std::int64_t leaf = feature_leaf(size(x));
  const T s = static_cast<T>(scale);
  if (from_logits) {
    const std::vector<T> e = exponentials(x);
    const T sum = sum_of(e, leaf);
    LossRow<T> row{
        log(static_cast<double>(sum)) - (static_cast<double>(at(x, label)) - static_cast<double>(largest(x))),
        row_of<T>(size(x), [&](std::int64_t i) { return at(e, i) * (s / sum); })};
    row.dx[static_cast<std::size_t>(label)] -= s;
    return row;
  }
  const T sum = sum_of(x, leaf), p = at(x, label) / sum;
  const T g = -off_ends_slope(p) / keep_off_ends(p);
  return {-log(static_cast<double>(keep_off_ends(p))),
          row_of<T>(size(x), [&](std::int64_t i) { return ((i == label ? g : T(0)) - g * p) * (s / sum); })};
}

template <class T>
LossRow<T> categorical_cross_entropy(const std::vector<T>& x, const std::vector<T>& targets, bool from_logits,
                                     double label_smoothing, double scale) {
  const std::int64_t n = size(x), leaf = feature_leaf(n);
  const T s = static_cast<T>(scale);
  const std::vector<T> t =
      smoothed(targets, label_smoothing, static_cast<T>(label_smoothing) / static_cast<T>(n));
  if (from_logits) {
    const std::vector<T> e = exponentials(x);
    const T m = largest(x), sum = sum_of(e, leaf), target_sum = sum_of(t, leaf);
    const T weighted = row_sum<T>(n, leaf, [&](std::int64_t i) { return at(t, i) * (at(x, i) - m); });
    return {static_cast<double>(target_sum) * log(static_cast<double>(sum)) - static_cast<double>(weighted),
            row_of<T>(n, [&](std::int64_t i) { return at(e, i) * ((target_sum * s) / sum) - at(t, i) * s; })};
  }
  const T sum = sum_of(x, leaf);
  const std::vector<T> p = row_of<T>(n, [&](std::int64_t i) { return at(x, i) / sum; });
  const T loss = row_sum<T>(n, leaf, [&](std::int64_t i) { return at(t, i) * log(keep_off_ends(at(p, i))); });
  const auto slope = [&](std::int64_t i) {
    return -at(t, i) / keep_off_ends(at(p, i)) * off_ends_slope(at(p, i));
  };
  const T along = row_sum<T>(n, leaf, [&](std::int64_t i) { return slope(i) * at(p, i); });
  return {-static_cast<double>(loss),
          row_of<T>(n, [&](std::int64_t i) { return (slope(i) - along) * (s / sum); })};
}

template <class T>
LossRow<T> binary_cross_entropy(const std::vector<T>& x, const std::vector<T>& targets, bool from_logits,
                                double label_smoothing, double scale) {
  const std::int64_t n = size(x);
  const T s = static_cast<T>(scale / static_cast<double>(n));
  const std::vector<T> t = smoothed(targets, label_smoothing, static_cast<T>(label_smoothing / 2));
  const auto above_zero = [](T v) { return v < 0 ? T(0) : v; };
  const auto loss = [&](std::int64_t i) {
    const T v = at(x, i), y = at(t, i);
    if (from_logits) {
      const T u = log1p_of_unit(exp(-std::fabs(v)));
      return y * (above_zero(-v) + u) + (T(1) - y) * (above_zero(v) + u);
    }
    const T c = keep_off_ends(v);
    return -(y * log(c) + (T(1) - y) * log(T(1) - c));
  };
  const auto slope = [&](std::int64_t i) {
    const T v = at(x, i), y = at(t, i);
    if (from_logits) return (sigmoid(v) - y) * s;
    const T c = keep_off_ends(v);
    return off_ends_slope(v) * ((T(1) - y) / (T(1) - c) - y / c) * s;
  };
  return {static_cast<double>(row_sum<T>(n, feature_leaf(n), loss)) / static_cast<double>(n),
          row_of<T>(n, slope)};
}

template <class T>
LossRow<T> mean_squared_error(const std::vector<T>& x, const std::vector<T>& targets, double scale) {
  const std::int64_t n = size(x);
  const T factor = static_cast<T>(2 * scale / static_cast<double>(n));
  const auto d = [&](std::int64_t i) { return at(x, i) - at(targets, i); };
  const T sum = row_sum<T>(n, feature_leaf(n), [&](std::int64_t i) { return d(i) * d(i); });
  return {static_cast<double>(sum) / static_cast<double>(n),
          row_of<T>(n, [&](std::int64_t i) { return d(i) * factor; })};
}

template <class T>
LossRow<T> mean_absolute_error(const std::vector<T>& x, const std::vector<T>& targets, double scale) {
  const std::int64_t n = size(x);
  const T factor = static_cast<T>(scale / static_cast<double>(n));
  const auto d = [&](std::int64_t i) { return at(x, i) - at(targets, i); };
  const T sum = row_sum<T>(n, feature_leaf(n), [&](std::int64_t i) { return std::fabs(d(i)); });
  return {static_cast<double>(sum) / static_cast<double>(n), row_of<T>(n, [&](std::int64_t i) {
            return (d(i) > 0 ? T(1) : d(i) < 0 ? T(-1) : d(i)) * factor;
          })};
}

template <class T>
LossRow<T> huber(const std::vector<T>& x, const std::vector<T>& targets, double delta, double scale) {
  const std::int64_t n = size(x);
  const T most = static_cast<T>(delta), factor = static_cast<T>(scale / static_cast<double>(n));
  const auto d = [&](std::int64_t i) { return at(x, i) - at(targets, i); };
  const T sum = row_sum<T>(n, feature_leaf(n), [&](std::int64_t i) {
    const T size = std::fabs(d(i));
    return size > most ? most * size - T(0.5) * (most * most) : T(0.5) * (d(i) * d(i));
  });
  return {static_cast<double>(sum) / static_cast<double>(n), row_of<T>(n, [&](std::int64_t i) {
            return (d(i) > most ? most : d(i) < -most ? -most : d(i)) * factor;
          })};
}

#define RANKINE_INSTANTIATE(T)                                                                              \
  template std::vector<T> softmax(const std::vector<T>&, bool);                                             \
  template std::vector<T> softmax_gradient(const std::vector<T>&, bool, const std::vector<T>&);             \
  template NormRow<T> layer_norm(const std::vector<T>&, const std::vector<T>&, const std::vector<T>&, T);   \
  template NormRow<T> rms_norm(const std::vector<T>&, const std::vector<T>&, T, bool);                      \
  template NormGradientRow<T> layer_norm_gradient(const std::vector<T>&, const std::vector<T>&, T, T,       \
                                                  const std::vector<T>&);                                   \
  template NormGradientRow<T> rms_norm_gradient(const std::vector<T>&, const std::vector<T>&, T, bool,      \
                                                const std::vector<T>&);                                     \
  template LossRow<T> sparse_cross_entropy(const std::vector<T>&, std::int32_t, bool, double);              \
  template LossRow<T> categorical_cross_entropy(const std::vector<T>&, const std::vector<T>&, bool, double, \
                                                double);                                                    \
  template LossRow<T> binary_cross_entropy(const std::vector<T>&, const std::vector<T>&, bool, double,      \
                                           double);                                                         \
  template LossRow<T> mean_squared_error(const std::vector<T>&, const std::vector<T>&, double);             \
  template LossRow<T> mean_absolute_error(const std::vector<T>&, const std::vector<T>&, double);            \
  template LossRow<T> huber(const std::vector<T>&, const std::vector<T>&, double, double);
RANKINE_INSTANTIATE(float)
RANKINE_INSTANTIATE(double)
#undef RANKINE_INSTANTIATE

}  // namespace rankine::reference
