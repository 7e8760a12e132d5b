#include "optimizer/penalty_gradient.hpp"

#include "optimizer/rule.hpp"
#include "optimizer/wide_loop.hpp"

namespace rankine {

void add_penalty_gradient(const Regularizer& regularizer, const Tensor& value, const Tensor& gradient) {
  with_floating(value.dtype, [&]<class T>() {
    wide_loop([&]() __attribute__((always_inline)) {
      const T l1 = static_cast<T>(regularizer.l1), twice_l2 = T{2} * static_cast<T>(regularizer.l2);
      const T* const w = value.as<T>();
      T* const g = gradient.as<T>();
      for (std::int64_t i = 0, n = value.elements(); i < n; ++i) {
        const T sign = static_cast<T>(static_cast<int>(w[i] > 0) - static_cast<int>(w[i] < 0));
        g[i] += l1 * sign + twice_l2 * w[i];
      }
    });
  });
}

}  // namespace rankine
