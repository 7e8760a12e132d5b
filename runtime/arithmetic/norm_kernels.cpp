// Compiled once an instruction set. See norm_kernels.hpp.

#include "runtime/arithmetic/norm_kernels.hpp"

#include "runtime/arithmetic/elementary.hpp"
#include "runtime/arithmetic/row_kernels.hpp"
#include "runtime/arithmetic/row_sum.hpp"

namespace rankine::RANKINE_ISA {
namespace {

template <class T, class Term>
RANKINE_INLINE T row_mean(std::int64_t n, Term term) {
  return row_sum<T>(n, k_row_sum_leaf, term) / static_cast<T>(n);
}
template <class T>
RANKINE_INLINE T mean_of(const T* x, std::int64_t n) {
  return row_mean<T>(n, [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA { return part.load(x + i); });
}
/// Mean of (x - centre)^2.
template <class T>
RANKINE_INLINE T mean_square(const T* x, T centre, std::int64_t n) {
  const auto c = all(centre);
  return row_mean<T>(n, [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
    const auto d = part.load(x + i) - c;
    return d * d;
  });
}
template <class T>
RANKINE_INLINE T reciprocal_root(T variance, T epsilon) {
  return first_lane(all(T(1)) / sqrt(all(variance + epsilon)));
}

/// (x - centre) * rstd, the normalised row.
template <class T>
struct Normalized {
  const T* x;
  Vec<T> centre, rstd;
  template <class Part>
  RANKINE_INLINE Vec<T> operator()(std::int64_t i, Part part) const {
    return (part.load(x + i) - centre) * rstd;
  }
};

template <class T>
RANKINE_INLINE void scale_and_shift(const NormForward<T>& call, const Normalized<T>& h, T* y) {
  each_vector<T>(call.columns, [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
    auto v = h(i, part);
    if (call.gamma != nullptr) v = v * part.load(call.gamma + i);
    if (call.beta != nullptr) v = v + part.load(call.beta + i);
    part.store(y + i, v);
  });
}

template <class T>
void layer_norm(const NormForward<T>& call) {
  for (std::int64_t r = 0; r < call.rows; ++r) {
    const T* x = call.x + r * call.columns;
    const T mean = mean_of(x, call.columns);
    const T rstd = reciprocal_root(mean_square(x, mean, call.columns), call.epsilon);
    call.statistics[2 * r] = mean;
    call.statistics[2 * r + 1] = rstd;
    scale_and_shift(call, {x, all(mean), all(rstd)}, call.y + r * call.columns);
  }
}

template <class T>
void rms_norm(const NormForward<T>& call) {
  for (std::int64_t r = 0; r < call.rows; ++r) {
    const T* x = call.x + r * call.columns;
    const T centre = call.centre_variance ? mean_of(x, call.columns) : T(0);
    const T rstd = reciprocal_root(mean_square(x, centre, call.columns), call.epsilon);
    call.statistics[r] = rstd;
    scale_and_shift(call, {x, all(T(0)), all(rstd)}, call.y + r * call.columns);
  }
}

/// One row of dx: h is the normalised row, c what it loses along (the same, or centred); `shift` says whether
/// the mean of g is taken out as well. g = dy * gamma.
template <class T>
RANKINE_INLINE void input_gradient(const NormBackward<T>& call, std::int64_t r, const Normalized<T>& h,
                                   const Normalized<T>& c, bool shift) {
  const std::int64_t n = call.columns;
  const T* dy = call.dy + r * n;
  T* dx = call.dx + r * n;
  const auto g = [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
    const auto v = part.load(dy + i);
    return call.gamma != nullptr ? v * part.load(call.gamma + i) : v;
  };
  const auto mean_g = all(shift ? row_mean<T>(n, g) : T(0));
  const auto mean_gh = all(row_mean<T>(
      n, [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA { return g(i, part) * h(i, part); }));
  each_vector<T>(n, [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
    const auto centred = shift ? g(i, part) - mean_g : g(i, part);
    part.store(dx + i, h.rstd * (centred - c(i, part) * mean_gh));
  });
}

template <class T>
RANKINE_INLINE void gradient_row(const NormBackward<T>& call, std::int64_t r, const Normalized<T>& h,
                                 const Normalized<T>& c, bool shift) {
  const std::int64_t at = r * call.columns;
  if (call.dx != nullptr) input_gradient(call, r, h, c, shift);
  if (call.normalized_dy == nullptr) return;
  each_vector<T>(call.columns, [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
    part.store(call.normalized_dy + at + i, part.load(call.dy + at + i) * h(i, part));
  });
}

template <class T>
void layer_norm_gradient(const NormBackward<T>& call) {
  for (std::int64_t r = 0; r < call.rows; ++r) {
    const Normalized<T> h{call.x + r * call.columns, all(call.statistics[2 * r]),
                          all(call.statistics[2 * r + 1])};
    gradient_row(call, r, h, h, true);
  }
}

template <class T>
void rms_norm_gradient(const NormBackward<T>& call) {
  for (std::int64_t r = 0; r < call.rows; ++r) {
    const T* x = call.x + r * call.columns;
    const Normalized<T> h{x, all(T(0)), all(call.statistics[r])};
    const T centre = call.centre_variance ? mean_of(x, call.columns) : T(0);
    gradient_row(call, r, h, {x, all(centre), h.rstd}, false);
  }
}

template <class T>
constexpr NormKernels<T> k_kernels{layer_norm<T>, layer_norm_gradient<T>, rms_norm<T>, rms_norm_gradient<T>};

}  // namespace

void fill(NormKernels<float>& kernels) {
  kernels = k_kernels<float>;
}
void fill(NormKernels<double>& kernels) {
  kernels = k_kernels<double>;
}

}  // namespace rankine::RANKINE_ISA
