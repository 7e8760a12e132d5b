// Compiled once an instruction set. See elementwise_kernels.hpp.

#include "runtime/arithmetic/elementwise_kernels.hpp"

#include "runtime/arithmetic/each_vector.hpp"
#include "runtime/arithmetic/philox_rounds.hpp"

namespace rankine::RANKINE_ISA {
namespace {

template <class T>
void add(const T* a, const T* b, std::int64_t n, T* out) {
  each_vector<T>(n, [&](std::int64_t i, auto part)
                        RANKINE_INLINE_LAMBDA { part.store(out + i, part.load(a + i) + part.load(b + i)); });
}

template <class T>
void multiply(const T* a, const T* b, std::int64_t n, T* out) {
  each_vector<T>(n, [&](std::int64_t i, auto part)
                        RANKINE_INLINE_LAMBDA { part.store(out + i, part.load(a + i) * part.load(b + i)); });
}

template <class T>
void scale(const T* x, T factor, std::int64_t n, T* out) {
  const auto f = Vec<T>::set1(factor);
  each_vector<T>(
      n, [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA { part.store(out + i, part.load(x + i) * f); });
}

template <class T>
void divide(const T* x, T divisor, std::int64_t n, T* out) {
  const auto d = Vec<T>::set1(divisor);
  each_vector<T>(
      n, [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA { part.store(out + i, part.load(x + i) / d); });
}

template <class T>
void maximum(const T* a, const T* b, std::int64_t n, T* out) {
  each_vector<T>(n, [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
    const auto x = part.load(a + i), y = part.load(b + i);
    part.store(out + i, select(x > y, x, select(x <= y, y, x + y)));
  });
}

template <class T>
void minimum(const T* a, const T* b, std::int64_t n, T* out) {
  each_vector<T>(n, [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
    const auto x = part.load(a + i), y = part.load(b + i);
    part.store(out + i, select(x < y, x, select(x >= y, y, x + y)));
  });
}

template <class T>
void maximum_gradient(const T* a, const T* b, const T* dy, std::int64_t n, T* da) {
  const auto half = Vec<T>::set1(T(0.5)), zero = Vec<T>::zero();
  each_vector<T>(n, [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
    const auto x = part.load(a + i), y = part.load(b + i), d = part.load(dy + i);
    part.store(da + i, select(x > y, d, select(x == y, d * half, zero)));
  });
}

template <class T>
void minimum_gradient(const T* a, const T* b, const T* dy, std::int64_t n, T* da) {
  maximum_gradient(b, a, dy, n, da);
}

template <class T>
void add_bias(const T* x, const T* bias, std::int64_t rows, std::int64_t columns, T* out) {
  for (std::int64_t r = 0; r < rows; ++r) add(x + r * columns, bias, columns, out + r * columns);
}

template <class T>
void affine(const T* x, const T* centre, const T* scale, const T* shift, std::int64_t n, T* out) {
  each_vector<T>(n, [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
    const auto zero = Vec<T>::zero();
    const auto from = centre == nullptr ? zero : part.load(centre + i);
    const auto to = shift == nullptr ? zero : part.load(shift + i);
    part.store(out + i, fma(part.load(x + i) - from, part.load(scale + i), to));
  });
}

/// Random words of `count` times sixteen blocks from `block` on.
void random_words(const DropoutRun& run, std::int64_t block, int count, std::uint32_t* words) {
  std::int64_t places[k_lanes];
  for (int b = 0; b < k_lanes; ++b) places[b] = block + b;
  auto numbers = IntVec<double>::load(places);
  for (int i = 0; i < count; ++i) {
    PhiloxBlocks blocks{{numbers, IntVec<double>::set1(run.sample), IntVec<double>::set1(run.step),
                         IntVec<double>::set1(run.use)}};
    blocks.rounds(run.key);
    blocks.store(words + i * 4 * k_lanes);
    numbers = numbers + IntVec<double>::set1(k_lanes);
  }
}

// Many words first, then what they decide: a vector load right after narrower stores would wait for them.
template <class T>
void dropout(const DropoutRun& run, T factor, const T* x, std::int64_t n, T* y) {
  constexpr int k_count = 16, k_words = k_count * 4 * k_lanes;
  std::uint32_t words[k_words];
  std::int64_t block = run.first_block;
  for (std::int64_t at = 0; at < n; at += k_words, block += k_words / 4) {
    const int here = n - at < k_words ? static_cast<int>(n - at) : k_words;
    random_words(run, block, (here + 4 * k_lanes - 1) / (4 * k_lanes), words);
    const std::uint32_t threshold = run.threshold;
    for (int i = 0; i < here; ++i) {
      const T kept = x[at + i] * factor;
      y[at + i] = (words[i] >> 8) >= threshold ? kept : T(0);
    }
  }
}

template <class T>
constexpr ElementwiseKernels<T> k_kernels{add<T>,
                                          multiply<T>,
                                          scale<T>,
                                          divide<T>,
                                          maximum<T>,
                                          minimum<T>,
                                          maximum_gradient<T>,
                                          minimum_gradient<T>,
                                          add_bias<T>,
                                          affine<T>,
                                          dropout<T>};

}  // namespace

void fill(ElementwiseKernels<float>& kernels) {
  kernels = k_kernels<float>;
}
void fill(ElementwiseKernels<double>& kernels) {
  kernels = k_kernels<double>;
}

}  // namespace rankine::RANKINE_ISA
