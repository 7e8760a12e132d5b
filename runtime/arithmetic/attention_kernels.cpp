// Compiled once an instruction set. See attention_kernels.hpp for what each function does.

#include "runtime/arithmetic/attention_kernels.hpp"

#include "runtime/arithmetic/elementary.hpp"
#include "runtime/arithmetic/simd.hpp"

namespace rankine::RANKINE_ISA {
namespace {

template <class T>
RANKINE_INLINE std::int64_t visible_columns(const ScoreBlock<T>& block, std::int64_t row) {
  const std::int64_t visible = block.first_visible + row;
  return block.causal && visible < block.columns ? visible : block.columns;
}

/// Calls f(column, lanes) for each sixteen columns of [0, columns); `lanes` is less than 16 at the end only.
template <class F>
RANKINE_INLINE void each_vector(std::int64_t columns, F&& f) {
  std::int64_t j = 0;
  for (; j + k_lanes <= columns; j += k_lanes) f(j, k_lanes);
  if (j < columns) f(j, static_cast<int>(columns - j));
}

template <class T>
RANKINE_INLINE void clear(T* row, std::int64_t begin, std::int64_t end) {
  for (std::int64_t j = begin; j < end; ++j) row[j] = T(0);
}

template <class T>
void weights(const ScoreBlock<T>& block, T* statistics) {
  const auto scale = Vec<T>::set1(block.scale);
  const auto lowest = Vec<T>::set1(-static_cast<T>(__builtin_inf()));
  for (std::int64_t t = 0; t < block.rows; ++t) {
    T* row = block.scores.data + t * block.scores.row;
    const std::int64_t visible = visible_columns(block, t);
    auto largest = lowest;
    each_vector(visible, [&](std::int64_t j, int n) {
      const auto score = Vec<T>::load(row + j, n) * scale;
      largest = max(select(Mask<T>::first(n), score, lowest), largest);
    });
    const T maximum = reduce_max(largest);
    auto sum = Vec<T>::zero();
    each_vector(visible, [&](std::int64_t j, int n) {
      const auto weight = exp(Vec<T>::load(row + j, n) * scale - Vec<T>::set1(maximum));
      sum = sum + select(Mask<T>::first(n), weight, Vec<T>::zero());
      weight.store(row + j, n);
    });
    clear(row, visible, block.columns);
    statistics[2 * t] = maximum;
    statistics[2 * t + 1] = reduce_add(sum);
  }
}

template <class T>
void probabilities(const ScoreBlock<T>& block, const T* statistics) {
  const auto scale = Vec<T>::set1(block.scale);
  for (std::int64_t t = 0; t < block.rows; ++t) {
    T* row = block.scores.data + t * block.scores.row;
    const auto maximum = Vec<T>::set1(statistics[2 * t]);
    const auto share = Vec<T>::set1(T(1) / statistics[2 * t + 1]);
    const std::int64_t visible = visible_columns(block, t);
    each_vector(visible, [&](std::int64_t j, int n) {
      (exp(Vec<T>::load(row + j, n) * scale - maximum) * share).store(row + j, n);
    });
    clear(row, visible, block.columns);
  }
}

template <class T>
void score_gradients(const ScoreBlock<T>& block, Rows<T> gradients) {
  const auto scale = Vec<T>::set1(block.scale);
  for (std::int64_t t = 0; t < block.rows; ++t) {
    const T* probability = block.scores.data + t * block.scores.row;
    T* gradient = gradients.data + t * gradients.row;
    const std::int64_t visible = visible_columns(block, t);
    auto sum = Vec<T>::zero();
    each_vector(visible, [&](std::int64_t j, int n) {
      const auto next = fma(Vec<T>::load(probability + j, n), Vec<T>::load(gradient + j, n), sum);
      sum = select(Mask<T>::first(n), next, sum);
    });
    const auto mean = Vec<T>::set1(reduce_add(sum));
    each_vector(visible, [&](std::int64_t j, int n) {
      const auto centred = Vec<T>::load(gradient + j, n) - mean;
      (Vec<T>::load(probability + j, n) * centred * scale).store(gradient + j, n);
    });
    clear(gradient, visible, block.columns);
  }
}

template <class T>
void divide(Rows<T> x, std::int64_t rows, std::int64_t columns, const T* statistics) {
  for (std::int64_t t = 0; t < rows; ++t) {
    T* row = x.data + t * x.row;
    const auto sum = Vec<T>::set1(statistics[2 * t + 1]);
    each_vector(columns, [&](std::int64_t j, int n) { (Vec<T>::load(row + j, n) / sum).store(row + j, n); });
  }
}

template <class T>
void add(Rows<T> left, Rows<const T> right, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t t = 0; t < rows; ++t) {
    T* l = left.data + t * left.row;
    const T* r = right.data + t * right.row;
    each_vector(columns, [&](std::int64_t j, int n) {
      (Vec<T>::load(l + j, n) + Vec<T>::load(r + j, n)).store(l + j, n);
    });
  }
}

template <class T>
void fill_for(AttentionKernels<T>& kernels) {
  kernels = {weights<T>, probabilities<T>, score_gradients<T>, divide<T>, add<T>};
}

}  // namespace

void fill(AttentionKernels<float>& kernels) {
  fill_for(kernels);
}
void fill(AttentionKernels<double>& kernels) {
  fill_for(kernels);
}

}  // namespace rankine::RANKINE_ISA
