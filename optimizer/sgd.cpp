#include "optimizer/rule.hpp"

namespace rankine {
namespace {

class Sgd final : public Rule {
 public:
  Sgd(double momentum, bool nesterov) : momentum_(momentum), nesterov_(nesterov) {}

  std::vector<SlotKind> slots() const override {
    if (momentum_ == 0.0) return {};
    return {{"momentum"}};
  }

  void update(const UpdateScalars& scalars, const Elements& elements) const override {
    with_floating(elements.dtype, [&]<class T>() {
      if (momentum_ == 0.0) {
        plain<T>(scalars, elements);
      } else if (nesterov_) {
        with_momentum<T, true>(scalars, elements);
      } else {
        with_momentum<T, false>(scalars, elements);
      }
    });
  }

 private:
  template <class T>
  void plain(const UpdateScalars& scalars, const Elements& elements) const {
    const T rate = scalars.learning_rate;
    const T* __restrict g = elements.gradient_as<T>();
    T* __restrict w = elements.weight_as<T>();
    for (std::int64_t i = 0; i < elements.count; ++i) w[i] -= g[i] * rate;
  }

  template <class T, bool nesterov>
  void with_momentum(const UpdateScalars& scalars, const Elements& elements) const {
    const T rate = scalars.learning_rate;
    const T momentum = static_cast<T>(momentum_);
    const T* __restrict g = elements.gradient_as<T>();
    T* __restrict w = elements.weight_as<T>();
    T* __restrict m = elements.slot_as<T>(0);
    for (std::int64_t i = 0; i < elements.count; ++i) {
      const T step = g[i] * rate;
      m[i] = m[i] * momentum - step;
      w[i] += nesterov ? m[i] * momentum - step : m[i];
    }
  }

  double momentum_;
  bool nesterov_;
};

}  // namespace

std::unique_ptr<Rule> make_sgd(ConfigFields& config) {
  const double momentum = config.real("momentum", 0.0);
  if (!(momentum >= 0.0 && momentum <= 1.0)) config.refuse("momentum", "between 0 and 1");
  return std::make_unique<Sgd>(momentum, config.flag("nesterov", false));
}

}  // namespace rankine
