// Compiled once an instruction set. See loss_kernels.hpp for the formulas.

#include "runtime/arithmetic/loss_kernels.hpp"

#include "runtime/arithmetic/clip.hpp"
#include "runtime/arithmetic/elementary.hpp"
#include "runtime/arithmetic/row_sum.hpp"

namespace rankine::RANKINE_ISA {
namespace {

constexpr double k_epsilon = 1e-7;

/// A probability kept away from 0 and 1 as Keras does.
template <class T>
struct Clipped {
  RANKINE_INLINE explicit Clipped(Vec<T> p)
      : value(clip(p, low(), high())), slope(clip_slope(p, low(), high())) {}
  RANKINE_INLINE static Vec<T> low() { return all(T(k_epsilon)); }
  RANKINE_INLINE static Vec<T> high() { return all(T(1.0 - k_epsilon)); }
  Vec<T> value, slope;
};

RANKINE_INLINE double log_of(double x) {
  return first_lane(log(all(x)));
}

/// One row of a call.
template <class T>
struct Row {
  RANKINE_INLINE Row(const LossCall<T>& c, std::int64_t r)
      : n(c.columns),
        leaf(c.leaf),
        x(c.x + r * c.columns),
        dx(c.dx == nullptr ? nullptr : c.dx + r * c.columns),
        work(dx == nullptr ? c.scratch : dx) {}

  template <class F>
  RANKINE_INLINE void each(F f) const {
    each_vector<T>(n, f);
  }
  template <class F>
  RANKINE_INLINE T sum(F f) const {
    return row_sum<T>(n, leaf, f);
  }
  RANKINE_INLINE T sum_of(const T* p) const {
    return sum([&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA { return part.load(p + i); });
  }
  /// work = exp(x - max); returns its sum.
  RANKINE_INLINE T exponentials(T largest) const {
    const auto m = all(largest);
    each([&](std::int64_t i, auto part)
             RANKINE_INLINE_LAMBDA { part.store(work + i, exp(part.load(x + i) - m)); });
    return sum_of(work);
  }

  std::int64_t n, leaf;
  const T* x;
  T *dx, *work;
};

/// Targets of one row, smoothed.
template <class T>
struct Targets {
  const T* t;
  bool smooth;
  Vec<T> keep, spread;
  template <class Part>
  RANKINE_INLINE Vec<T> operator()(std::int64_t i, Part part) const {
    const auto v = part.load(t + i);
    return smooth ? v * keep + spread : v;
  }
};
template <class T>
RANKINE_INLINE Targets<T> smoothed(const LossCall<T>& c, std::int64_t r, T spread) {
  return {c.targets + r * c.columns, c.label_smoothing != 0.0, all(T(1.0 - c.label_smoothing)), all(spread)};
}

template <class T>
RANKINE_INLINE double sparse_logits_row(const Row<T>& row, std::int32_t label, T s) {
  const T largest = row_max(row.x, row.n);
  const T sum = row.exponentials(largest);
  if (row.dx != nullptr) {
    const auto factor = all(s / sum);
    row.each([&](std::int64_t i, auto part)
                 RANKINE_INLINE_LAMBDA { part.store(row.dx + i, part.load(row.dx + i) * factor); });
    row.dx[label] = row.dx[label] - s;
  }
  return log_of(static_cast<double>(sum)) -
         (static_cast<double>(row.x[label]) - static_cast<double>(largest));
}

template <class T>
RANKINE_INLINE double sparse_probabilities_row(const Row<T>& row, std::int32_t label, T s) {
  const T sum = row.sum_of(row.x);
  const T p = row.x[label] / sum;
  const Clipped<T> clipped(all(p));
  const T value = first_lane(clipped.value);
  if (row.dx != nullptr) {
    const T g = first_lane(-clipped.slope) / value;
    const T factor = s / sum;
    const auto other = all((T(0) - g * p) * factor);
    row.each([&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA { part.store(row.dx + i, other); });
    row.dx[label] = (g - g * p) * factor;
  }
  return -log_of(static_cast<double>(value));
}

template <class T>
void sparse_cross_entropy(const LossCall<T>& c) {
  const T s = static_cast<T>(c.scale);
  for (std::int64_t r = 0; r < c.rows; ++r) {
    const Row<T> row(c, r);
    c.element_loss[r] = c.from_logits ? sparse_logits_row(row, c.labels[r], s)
                                      : sparse_probabilities_row(row, c.labels[r], s);
  }
}

template <class T>
RANKINE_INLINE double categorical_logits_row(const Row<T>& row, const Targets<T>& t, T s) {
  const T largest = row_max(row.x, row.n);
  const auto m = all(largest);
  const T sum = row.exponentials(largest);
  const T target_sum = row.sum(t);
  const T weighted = row.sum([&](std::int64_t i, auto part)
                                 RANKINE_INLINE_LAMBDA { return t(i, part) * (part.load(row.x + i) - m); });
  if (row.dx != nullptr) {
    const auto factor = all((target_sum * s) / sum), scale = all(s);
    row.each([&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
      part.store(row.dx + i, part.load(row.dx + i) * factor - t(i, part) * scale);
    });
  }
  return static_cast<double>(target_sum) * log_of(static_cast<double>(sum)) - static_cast<double>(weighted);
}

template <class T>
RANKINE_INLINE double categorical_probabilities_row(const Row<T>& row, const Targets<T>& t, T s) {
  const T sum = row.sum_of(row.x);
  const auto divisor = all(sum);
  const auto probability = [&](std::int64_t i, auto part)
                               RANKINE_INLINE_LAMBDA { return part.load(row.x + i) / divisor; };
  const T loss = row.sum([&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
    return t(i, part) * log(Clipped<T>(probability(i, part)).value);
  });
  if (row.dx != nullptr) {
    const auto slope = [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
      const Clipped<T> clipped(probability(i, part));
      return -t(i, part) / clipped.value * clipped.slope;
    };
    const auto along = all(row.sum([&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
      return slope(i, part) * probability(i, part);
    }));
    const auto factor = all(s / sum);
    row.each([&](std::int64_t i, auto part)
                 RANKINE_INLINE_LAMBDA { part.store(row.dx + i, (slope(i, part) - along) * factor); });
  }
  return -static_cast<double>(loss);
}

template <class T>
void categorical_cross_entropy(const LossCall<T>& c) {
  const T s = static_cast<T>(c.scale);
  const T spread = static_cast<T>(c.label_smoothing) / static_cast<T>(c.columns);
  for (std::int64_t r = 0; r < c.rows; ++r) {
    const Row<T> row(c, r);
    const auto t = smoothed(c, r, spread);
    c.element_loss[r] =
        c.from_logits ? categorical_logits_row(row, t, s) : categorical_probabilities_row(row, t, s);
  }
}

template <class T>
RANKINE_INLINE T binary_logits_row(const Row<T>& row, const Targets<T>& targets, T s) {
  if (row.dx != nullptr) {
    row.each([&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
      part.store(row.dx + i, (sigmoid(part.load(row.x + i)) - targets(i, part)) * all(s));
    });
  }
  return row.sum([&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
    const auto x = part.load(row.x + i), t = targets(i, part);
    const auto u = log1p_of_unit(exp(-abs(x)));
    const auto zero = all(T(0));
    return t * (max(zero, -x) + u) + (all(T(1)) - t) * (max(zero, x) + u);
  });
}

template <class T>
RANKINE_INLINE T binary_probabilities_row(const Row<T>& row, const Targets<T>& targets, T s) {
  const auto one = all(T(1));
  if (row.dx != nullptr) {
    row.each([&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
      const Clipped<T> c(part.load(row.x + i));
      const auto t = targets(i, part);
      part.store(row.dx + i, c.slope * ((one - t) / (one - c.value) - t / c.value) * all(s));
    });
  }
  return row.sum([&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
    const Clipped<T> c(part.load(row.x + i));
    const auto t = targets(i, part);
    return -(t * log(c.value) + (one - t) * log(one - c.value));
  });
}

template <class T>
void binary_cross_entropy(const LossCall<T>& c) {
  const auto columns = static_cast<double>(c.columns);
  const T s = static_cast<T>(c.scale / columns);
  for (std::int64_t r = 0; r < c.rows; ++r) {
    const Row<T> row(c, r);
    const auto t = smoothed(c, r, static_cast<T>(c.label_smoothing / 2));
    const T sum = c.from_logits ? binary_logits_row(row, t, s) : binary_probabilities_row(row, t, s);
    c.element_loss[r] = static_cast<double>(sum) / columns;
  }
}

/// The mean over each row of loss(d), and dx = slope(d) * factor, where d = x - target.
template <class T, class Loss, class Slope>
RANKINE_INLINE void mean_of_errors(const LossCall<T>& c, T factor, Loss loss, Slope slope) {
  for (std::int64_t r = 0; r < c.rows; ++r) {
    const Row<T> row(c, r);
    const T* targets = c.targets + r * c.columns;
    const auto difference = [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
      return part.load(row.x + i) - part.load(targets + i);
    };
    const T sum =
        row.sum([&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA { return loss(difference(i, part)); });
    if (row.dx != nullptr) {
      row.each([&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
        part.store(row.dx + i, slope(difference(i, part)) * all(factor));
      });
    }
    c.element_loss[r] = static_cast<double>(sum) / static_cast<double>(c.columns);
  }
}

/// `size` with the sign of d; d where it is 0 or NaN.
template <class T>
RANKINE_INLINE Vec<T> with_sign(Vec<T> d, Vec<T> size) {
  const auto zero = all(T(0));
  return select(d > zero, size, select(d < zero, -size, d));
}

template <class T>
void mean_squared_error(const LossCall<T>& c) {
  mean_of_errors<T>(
      c, static_cast<T>(2 * c.scale / static_cast<double>(c.columns)),
      [](Vec<T> d) RANKINE_INLINE_LAMBDA { return d * d; }, [](Vec<T> d) RANKINE_INLINE_LAMBDA { return d; });
}

template <class T>
void mean_absolute_error(const LossCall<T>& c) {
  mean_of_errors<T>(
      c, static_cast<T>(c.scale / static_cast<double>(c.columns)),
      [](Vec<T> d) RANKINE_INLINE_LAMBDA { return abs(d); },
      [](Vec<T> d) RANKINE_INLINE_LAMBDA { return with_sign<T>(d, all(T(1))); });
}

template <class T>
void huber(const LossCall<T>& c) {
  const T wide = static_cast<T>(c.delta);
  const auto delta = all(wide), half = all(T(0.5)), offset = all(T(0.5) * (wide * wide));
  mean_of_errors<T>(
      c, static_cast<T>(c.scale / static_cast<double>(c.columns)),
      [&](Vec<T> d) RANKINE_INLINE_LAMBDA {
        const auto size = abs(d);
        return select(size > delta, delta * size - offset, half * (d * d));
      },
      [&](Vec<T> d) RANKINE_INLINE_LAMBDA { return select(abs(d) > delta, with_sign<T>(d, delta), d); });
}

template <class T>
constexpr LossKernels<T> k_kernels{sparse_cross_entropy<T>, categorical_cross_entropy<T>,
                                   binary_cross_entropy<T>, mean_squared_error<T>,
                                   mean_absolute_error<T>,  huber<T>};

}  // namespace

void fill(LossKernels<float>& kernels) {
  kernels = k_kernels<float>;
}
void fill(LossKernels<double>& kernels) {
  kernels = k_kernels<double>;
}

}  // namespace rankine::RANKINE_ISA
