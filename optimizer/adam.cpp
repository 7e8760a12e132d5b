#include <cmath>

#include "optimizer/rule.hpp"

namespace rankine {
namespace {

struct AdamSettings {
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  bool amsgrad = false;
};

/// β^t as Keras has it: β rounded to the variable's dtype, then the power.
template <class T>
T power(double beta, std::int64_t t) {
  return static_cast<T>(std::pow(static_cast<double>(static_cast<T>(beta)), static_cast<double>(t)));
}

class Adam final : public Rule {
 public:
  explicit Adam(const AdamSettings& settings) : settings_(settings) {}

  std::vector<SlotKind> slots() const override {
    std::vector<SlotKind> kinds{{"momentum"}, {"velocity"}};
    if (settings_.amsgrad) kinds.push_back({"velocity_hat", 1});
    return kinds;
  }

  void update(const UpdateScalars& scalars, const Elements& elements) const override {
    with_floating(elements.dtype, [&]<class T>() {
      settings_.amsgrad ? run<T, true>(scalars, elements) : run<T, false>(scalars, elements);
    });
  }

 private:
  template <class T, bool amsgrad>
  void run(const UpdateScalars& scalars, const Elements& elements) const {
    const T rate = scalars.learning_rate;
    const T alpha = rate * std::sqrt(T{1} - power<T>(settings_.beta_2, scalars.t)) /
                    (T{1} - power<T>(settings_.beta_1, scalars.t));
    const T rest_1 = static_cast<T>(1 - settings_.beta_1);
    const T rest_2 = static_cast<T>(1 - settings_.beta_2);
    const T epsilon = static_cast<T>(settings_.epsilon);
    const T* __restrict g = elements.gradient_as<T>();
    T* __restrict w = elements.weight_as<T>();
    T* __restrict m = elements.slot_as<T>(0);
    T* __restrict v = elements.slot_as<T>(1);
    T* __restrict largest = elements.slot_as<T>(2);
    for (std::int64_t i = 0; i < elements.count; ++i) {
      m[i] += (g[i] - m[i]) * rest_1;
      v[i] += (g[i] * g[i] - v[i]) * rest_2;
      T second = v[i];
      if constexpr (amsgrad) {
        second = second <= largest[i] ? largest[i] : second;  // a NaN goes on, as in Keras's maximum
        largest[i] = second;
      }
      w[i] -= m[i] * alpha / (std::sqrt(second) + epsilon);
    }
  }

  AdamSettings settings_;
};

}  // namespace

std::unique_ptr<Rule> make_adam(ConfigFields& config) {
  const AdamSettings defaults;
  AdamSettings settings;
  settings.beta_1 = config.number("beta_1", defaults.beta_1);
  settings.beta_2 = config.number("beta_2", defaults.beta_2);
  settings.epsilon = config.number("epsilon", defaults.epsilon);
  settings.amsgrad = config.flag("amsgrad", defaults.amsgrad);
  if (!(settings.beta_1 >= 0 && settings.beta_1 < 1)) config.refuse("beta_1", "at least 0 and below 1");
  if (!(settings.beta_2 >= 0 && settings.beta_2 < 1)) config.refuse("beta_2", "at least 0 and below 1");
  if (!(settings.epsilon >= 0)) config.refuse("epsilon", "at least 0");
  return std::make_unique<Adam>(settings);
}

}  // namespace rankine
