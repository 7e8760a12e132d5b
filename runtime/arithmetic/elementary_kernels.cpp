// Compiled once an instruction set. See elementary_kernels.hpp.

#include "runtime/arithmetic/elementary_kernels.hpp"

#include "runtime/arithmetic/each_vector.hpp"
#include "runtime/arithmetic/elementary.hpp"

namespace rankine::RANKINE_ISA {
namespace {

template <class T, class F>
RANKINE_INLINE void map(const T* x, std::int64_t n, T* y, F f) {
  each_vector_once<T>(
      n, [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA { part.store(y + i, f(part.load(x + i))); });
}

#define RANKINE_MAP(name, expression)                                        \
  template <class T>                                                         \
  void name(const T* x, std::int64_t n, T* y) {                              \
    map(x, n, y, [](Vec<T> v) RANKINE_INLINE_LAMBDA { return expression; }); \
  }
RANKINE_MAP(exp_of, exp(v))
RANKINE_MAP(expm1_of, expm1(v))
RANKINE_MAP(log_of, log(v))
RANKINE_MAP(log1p_of, log1p_of_unit(v))
RANKINE_MAP(tanh_of, tanh(v))
RANKINE_MAP(sigmoid_of, sigmoid(v))
RANKINE_MAP(softplus_of, softplus(v))
RANKINE_MAP(erf_of, erf(v))
RANKINE_MAP(normal_below_of, normal_distribution(v).below)
RANKINE_MAP(normal_bell_of, normal_distribution(v).bell)
#undef RANKINE_MAP

template <class T>
constexpr ElementaryKernels<T> k_kernels{exp_of<T>,          expm1_of<T>,      log_of<T>,      log1p_of<T>,
                                         tanh_of<T>,         sigmoid_of<T>,    softplus_of<T>, erf_of<T>,
                                         normal_below_of<T>, normal_bell_of<T>};

}  // namespace

void fill(ElementaryKernels<float>& kernels) {
  kernels = k_kernels<float>;
}
void fill(ElementaryKernels<double>& kernels) {
  kernels = k_kernels<double>;
}

}  // namespace rankine::RANKINE_ISA
