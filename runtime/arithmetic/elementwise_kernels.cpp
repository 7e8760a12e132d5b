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
void add_bias(const T* x, const T* bias, std::int64_t rows, std::int64_t columns, T* out) {
  for (std::int64_t r = 0; r < rows; ++r) add(x + r * columns, bias, columns, out + r * columns);
}

// Sixteen blocks of four words at once, in plain loops that compilers turn into vectors; integers are exact.
template <class T>
void dropout(const DropoutRun& run, T factor, const T* x, std::int64_t n, T* y) {
  constexpr int k_blocks = 16;
  std::uint32_t words[4 * k_blocks];
  std::uint32_t block = run.first_block;
  for (std::int64_t at = 0; at < n; at += 4 * k_blocks, block += k_blocks) {
    std::uint32_t w[4][k_blocks];
    for (int b = 0; b < k_blocks; ++b) {
      w[0][b] = block + static_cast<std::uint32_t>(b);
      w[1][b] = run.sample;
      w[2][b] = run.step;
      w[3][b] = run.use;
    }
    philox_rounds<k_blocks>(run.key, w);
    for (int b = 0; b < k_blocks; ++b) {
      for (int i = 0; i < 4; ++i) words[4 * b + i] = w[i][b];
    }
    const int count = n - at < 4 * k_blocks ? static_cast<int>(n - at) : 4 * k_blocks;
    for (int i = 0; i < count; ++i) y[at + i] = (words[i] >> 8) >= run.threshold ? x[at + i] * factor : T(0);
  }
}

template <class T>
constexpr ElementwiseKernels<T> k_kernels{add<T>, multiply<T>, scale<T>, divide<T>, add_bias<T>, dropout<T>};

}  // namespace

void fill(ElementwiseKernels<float>& kernels) {
  kernels = k_kernels<float>;
}
void fill(ElementwiseKernels<double>& kernels) {
  kernels = k_kernels<double>;
}

}  // namespace rankine::RANKINE_ISA
