#include <cmath>

#include "optimizer/keras_object.hpp"
#include "optimizer/rule.hpp"
#include "optimizer/wide_loop.hpp"

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

/// What all elements of an update share, in the variables' dtype.
template <class T>
struct AdamFactors {
  T alpha, rest_1, rest_2, epsilon;

  AdamFactors(const AdamSettings& settings, const UpdateScalars& scalars)
      : alpha(T{scalars.learning_rate} * std::sqrt(T{1} - power<T>(settings.beta_2, scalars.t)) /
              (T{1} - power<T>(settings.beta_1, scalars.t))),
        rest_1(static_cast<T>(1 - settings.beta_1)),
        rest_2(static_cast<T>(1 - settings.beta_2)),
        epsilon(static_cast<T>(settings.epsilon)) {}
};

template <class T, bool amsgrad>
void update_elements(const AdamFactors<T>& factors, const Elements& elements) {
  wide_loop([&]() __attribute__((always_inline)) {
    const AdamFactors<T> f = factors;
    const T* __restrict g = elements.gradient_as<T>();
    T* __restrict w = elements.weight_as<T>();
    T* __restrict m = elements.slot_as<T>(0);
    T* __restrict v = elements.slot_as<T>(1);
    T* __restrict largest = elements.slot_as<T>(2);
    for (std::int64_t i = 0, count = elements.count; i < count; ++i) {
      m[i] += (g[i] - m[i]) * f.rest_1;
      v[i] += (g[i] * g[i] - v[i]) * f.rest_2;
      T second = v[i];
      if constexpr (amsgrad) {
        second = second <= largest[i] ? largest[i] : second;  // a NaN goes on, as in Keras's maximum
        largest[i] = second;
      }
      w[i] -= m[i] * f.alpha / (std::sqrt(second) + f.epsilon);
    }
  });
}

class Adam final : public Rule {
 public:
  explicit Adam(const AdamSettings& settings)
      : settings_(settings), single_(settings, {}), double_(settings, {}) {}

  std::vector<SlotKind> slots() const override {
    std::vector<SlotKind> kinds{{"momentum"}, {"velocity"}};
    if (settings_.amsgrad) kinds.push_back({"velocity_hat", 1});
    return kinds;
  }

  void begin_update(const UpdateScalars& scalars) override {
    single_ = {settings_, scalars};
    double_ = {settings_, scalars};
  }

  void update(const Elements& elements) const override {
    const auto run = [&]<class T>(const AdamFactors<T>& factors) {
      settings_.amsgrad ? update_elements<T, true>(factors, elements)
                        : update_elements<T, false>(factors, elements);
    };
    elements.dtype == DType::float64 ? run(double_) : run(single_);
  }

 private:
  AdamSettings settings_;
  AdamFactors<float> single_;
  AdamFactors<double> double_;
};

}  // namespace

std::unique_ptr<Rule> make_adam(ConfigReader& config) {
  const AdamSettings defaults;
  AdamSettings settings;
  settings.beta_1 = config.get<double>("beta_1", defaults.beta_1);
  settings.beta_2 = config.get<double>("beta_2", defaults.beta_2);
  settings.epsilon = config.get<double>("epsilon", defaults.epsilon);
  settings.amsgrad = config.get<bool>("amsgrad", defaults.amsgrad);
  if (!(settings.beta_1 >= 0 && settings.beta_1 < 1))
    refuse_value(config, "beta_1", "at least 0 and below 1");
  if (!(settings.beta_2 >= 0 && settings.beta_2 < 1))
    refuse_value(config, "beta_2", "at least 0 and below 1");
  if (!(settings.epsilon >= 0)) refuse_value(config, "epsilon", "at least 0");
  return std::make_unique<Adam>(settings);
}

}  // namespace rankine
