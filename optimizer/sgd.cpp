#include <nlohmann/json.hpp>

#include "optimizer/keras_object.hpp"
#include "optimizer/rule.hpp"
#include "optimizer/wide_loop.hpp"

namespace rankine {
namespace {

template <class T>
void plain(T rate, const Elements& elements) {
  wide_loop([&]() __attribute__((always_inline)) {
    const T* __restrict g = elements.gradient_as<T>();
    T* __restrict w = elements.weight_as<T>();
    for (std::int64_t i = 0, count = elements.count; i < count; ++i) w[i] -= g[i] * rate;
  });
}

template <class T, bool nesterov>
void with_momentum(T rate, T momentum, const Elements& elements) {
  wide_loop([&]() __attribute__((always_inline)) {
    const T* __restrict g = elements.gradient_as<T>();
    T* __restrict w = elements.weight_as<T>();
    T* __restrict m = elements.slot_as<T>(0);
    for (std::int64_t i = 0, count = elements.count; i < count; ++i) {
      const T step = g[i] * rate;
      m[i] = m[i] * momentum - step;
      w[i] += nesterov ? m[i] * momentum - step : m[i];
    }
  });
}

class Sgd final : public Rule {
 public:
  Sgd(double momentum, bool nesterov) : momentum_(momentum), nesterov_(nesterov) {}

  std::vector<SlotKind> slots() const override {
    if (momentum_ == 0.0) return {};
    return {{"momentum"}};
  }

  void begin_update(const UpdateScalars& scalars) override { learning_rate_ = scalars.learning_rate; }

  void update(const Elements& elements) const override {
    with_floating(elements.dtype, [&]<class T>() {
      const T rate = learning_rate_, momentum = static_cast<T>(momentum_);
      if (momentum_ == 0.0) {
        plain<T>(rate, elements);
      } else if (nesterov_) {
        with_momentum<T, true>(rate, momentum, elements);
      } else {
        with_momentum<T, false>(rate, momentum, elements);
      }
    });
  }

 private:
  double momentum_;
  bool nesterov_;
  float learning_rate_ = 0.0F;
};

}  // namespace

std::unique_ptr<Rule> make_sgd(ConfigReader& config) {
  const auto* given = config.raw("momentum");
  if (given != nullptr && !given->is_number_float()) {
    refuse_value(config, "momentum", "a float, as Keras wants it (write 1.0, not 1)");
  }
  const double momentum = given == nullptr ? 0.0 : given->get<double>();
  if (!(momentum >= 0.0 && momentum <= 1.0)) refuse_value(config, "momentum", "between 0 and 1");
  return std::make_unique<Sgd>(momentum, config.get<bool>("nesterov", false));
}

}  // namespace rankine
