// Compiled once an instruction set. See activation_kernels.hpp.

#include "runtime/arithmetic/activation_kernels.hpp"

#include "runtime/arithmetic/activations.hpp"
#include "runtime/arithmetic/each_vector.hpp"

namespace rankine::RANKINE_ISA {
namespace {

template <class T>
struct Values {
  const T* x;
  std::int64_t n;
  T* y;
  template <class Kind>
  RANKINE_INLINE void run(const Kind& kind) const {
    each_vector_once<T>(n, [&](std::int64_t i, auto part)
                               RANKINE_INLINE_LAMBDA { part.store(y + i, kind.value(part.load(x + i))); });
  }
};

template <class T>
struct Gradients {
  const T *x, *dy;
  std::int64_t n;
  T* dx;
  template <class Kind>
  RANKINE_INLINE void run(const Kind& kind) const {
    each_vector_once<T>(n, [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
      part.store(dx + i, part.load(dy + i) * kind.slope(part.load(x + i)));
    });
  }
};

template <class T, class Work>
RANKINE_INLINE void with_kind(const ActivationFunction& f, const Work& work) {
#define RANKINE_KIND(name, Kind) \
  case ActivationKind::name:     \
    return work.run(Kind<T>(f));
  switch (f.kind) {
    RANKINE_KIND(linear, Linear)
    RANKINE_KIND(relu, Relu)
    RANKINE_KIND(relu6, Relu6)
    RANKINE_KIND(leaky_relu, LeakyRelu)
    RANKINE_KIND(elu, Elu)
    RANKINE_KIND(selu, Selu)
    RANKINE_KIND(celu, Celu)
    RANKINE_KIND(gelu, Gelu)
    RANKINE_KIND(gelu_tanh, GeluTanh)
    RANKINE_KIND(silu, Silu)
    RANKINE_KIND(softplus, Softplus)
    RANKINE_KIND(reciprocal, Reciprocal)
    RANKINE_KIND(softsign, Softsign)
    RANKINE_KIND(tanh, Tanh)
    RANKINE_KIND(sigmoid, Sigmoid)
    RANKINE_KIND(hard_sigmoid, HardSigmoid)
    RANKINE_KIND(hard_silu, HardSilu)
    RANKINE_KIND(hard_tanh, HardTanh)
    RANKINE_KIND(mish, Mish)
    RANKINE_KIND(exponential, Exponential)
    RANKINE_KIND(log_sigmoid, LogSigmoid)
    RANKINE_KIND(squareplus, Squareplus)
    RANKINE_KIND(hard_shrink, HardShrink)
    RANKINE_KIND(soft_shrink, SoftShrink)
    RANKINE_KIND(tanh_shrink, TanhShrink)
    RANKINE_KIND(threshold, Threshold)
    RANKINE_KIND(sparse_plus, SparsePlus)
    RANKINE_KIND(sparse_sigmoid, SparseSigmoid)
  }
#undef RANKINE_KIND
}

template <class T>
void value(const ActivationFunction& f, const T* x, std::int64_t n, T* y) {
  with_kind<T>(f, Values<T>{x, n, y});
}
template <class T>
void gradient(const ActivationFunction& f, const T* x, const T* dy, std::int64_t n, T* dx) {
  with_kind<T>(f, Gradients<T>{x, dy, n, dx});
}

template <class T>
constexpr ActivationKernels<T> k_kernels{value<T>, gradient<T>};

}  // namespace

void fill(ActivationKernels<float>& kernels) {
  kernels = k_kernels<float>;
}
void fill(ActivationKernels<double>& kernels) {
  kernels = k_kernels<double>;
}

}  // namespace rankine::RANKINE_ISA
