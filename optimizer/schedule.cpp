#include "optimizer/schedule.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "optimizer/keras_object.hpp"
#include "runtime/error.hpp"
#include "runtime/model/known_words.hpp"

namespace rankine {
namespace {

// Keras computes a schedule with float32 tensors. Each operation below is one of its operations, rounded to
// float32; the functions that IEEE leaves open go through double, whose error is far below a float32 step.
float power(float base, float exponent) {
  return static_cast<float>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
}
float cosine(float x) {
  return static_cast<float>(std::cos(static_cast<double>(x)));
}
float logarithm(float x) {
  return static_cast<float>(std::log(static_cast<double>(x)));
}
constexpr float k_pi = std::numbers::pi_v<float>;

float initial_rate(ConfigReader& config) {
  // Keras would go on in integers here and give a rate of 0.
  const auto* value = config.raw("initial_learning_rate");
  if (value == nullptr || !value->is_number_float()) {
    refuse_value(config, "initial_learning_rate", "a float (write 1.0, not 1)");
  }
  return value->get<float>();
}

double positive(ConfigReader& config, const char* key) {
  const double value = config.required<double>(key);
  if (!(value > 0)) refuse_value(config, key, "greater than 0");
  return value;
}

std::vector<double> numbers(ConfigReader& config, const char* key) {
  const auto* value = config.raw(key);
  if (value == nullptr || !value->is_array() ||
      !std::all_of(value->begin(), value->end(), [](const auto& element) { return element.is_number(); })) {
    refuse_value(config, key, "a list of numbers");
  }
  return value->get<std::vector<double>>();
}

Schedule exponential_decay(ConfigReader& config) {
  const float initial = initial_rate(config);
  const auto steps = static_cast<float>(positive(config, "decay_steps"));
  const auto rate = static_cast<float>(config.required<double>("decay_rate"));
  const bool staircase = config.get<bool>("staircase", false);
  return [=](std::int64_t step) {
    const float p = static_cast<float>(step) / steps;
    return initial * power(rate, staircase ? std::floor(p) : p);
  };
}

Schedule inverse_time_decay(ConfigReader& config) {
  const float initial = initial_rate(config);
  const auto steps = static_cast<float>(positive(config, "decay_steps"));
  const auto rate = static_cast<float>(config.required<double>("decay_rate"));
  const bool staircase = config.get<bool>("staircase", false);
  return [=](std::int64_t step) {
    const float p = static_cast<float>(step) / steps;
    return initial / (1.0F + rate * (staircase ? std::floor(p) : p));
  };
}

Schedule piecewise_constant_decay(ConfigReader& config) {
  const auto given = numbers(config, "boundaries");
  const auto values = numbers(config, "values");
  if (given.empty()) refuse_value(config, "boundaries", "at least one step");
  if (values.size() != given.size() + 1) {
    refuse_value(config, "values", "one more than the " + std::to_string(given.size()) + " boundaries");
  }
  std::vector<std::int64_t> boundaries;
  for (const double b : given) boundaries.push_back(static_cast<std::int64_t>(b));  // Keras casts to integers
  if (!std::is_sorted(boundaries.begin(), boundaries.end()))
    refuse_value(config, "boundaries", "in rising order");
  return [=](std::int64_t step) {
    const auto at = std::lower_bound(boundaries.begin(), boundaries.end(), step) - boundaries.begin();
    return static_cast<float>(values[static_cast<std::size_t>(at)]);
  };
}

Schedule polynomial_decay(ConfigReader& config) {
  const float initial = initial_rate(config);
  const auto steps = static_cast<float>(positive(config, "decay_steps"));
  const auto end = static_cast<float>(config.get<double>("end_learning_rate", 1e-4));
  const auto exponent = static_cast<float>(config.get<double>("power", 1.0));
  const bool cycle = config.get<bool>("cycle", false);
  return [=](std::int64_t raw) {
    auto step = static_cast<float>(raw);
    float over = steps;
    if (cycle) {
      over *= raw == 0 ? 1.0F : std::ceil(step / steps);
    } else {
      step = std::min(step, steps);
    }
    return (initial - end) * power(1.0F - step / over, exponent) + end;
  };
}

Schedule cosine_decay(ConfigReader& config) {
  const float initial = initial_rate(config);
  const auto steps = static_cast<float>(positive(config, "decay_steps"));
  const double alpha = config.get<double>("alpha", 0.0);
  const auto target = config.optional<double>("warmup_target");
  const auto warmup = static_cast<float>(config.get<double>("warmup_steps", 0.0));
  const auto decayed = [=](float step, float from) {
    const float cosine_decayed = 0.5F * (1.0F + cosine(k_pi * (step / steps)));
    return from * (static_cast<float>(1 - alpha) * cosine_decayed + static_cast<float>(alpha));
  };
  if (!target) {
    return [=](std::int64_t step) { return decayed(std::min(static_cast<float>(step), steps), initial); };
  }
  const auto from = static_cast<float>(*target);
  return [=](std::int64_t raw) {
    const float step = std::min(static_cast<float>(raw), steps + warmup);
    if (step < warmup) return (from - initial) * (step / warmup) + initial;
    return decayed(step - warmup, from);
  };
}

Schedule cosine_decay_restarts(ConfigReader& config) {
  const float initial = initial_rate(config);
  const auto first = static_cast<float>(positive(config, "first_decay_steps"));
  const auto t_mul = static_cast<float>(config.get<double>("t_mul", 2.0));
  const auto m_mul = static_cast<float>(config.get<double>("m_mul", 1.0));
  const auto alpha = static_cast<float>(config.get<double>("alpha", 0.0));
  if (!(t_mul > 0)) refuse_value(config, "t_mul", "greater than 0");
  return [=](std::int64_t step) {
    float fraction = static_cast<float>(step) / first;
    float restart = 0.0F;
    if (t_mul == 1.0F) {
      restart = std::floor(fraction);
      fraction -= restart;
    } else {
      restart = std::floor(logarithm(1.0F - fraction * (1.0F - t_mul)) / logarithm(t_mul));
      const float before = (1.0F - power(t_mul, restart)) / (1.0F - t_mul);
      fraction = (fraction - before) / power(t_mul, restart);
    }
    const float cosine_decayed = 0.5F * power(m_mul, restart) * (1.0F + cosine(k_pi * fraction));
    return initial * ((1.0F - alpha) * cosine_decayed + alpha);
  };
}

struct ScheduleKind {
  const char* class_name;
  Schedule (*make)(ConfigReader&);
};
constexpr std::array k_schedules{
    ScheduleKind{"ExponentialDecay", exponential_decay},
    ScheduleKind{"PiecewiseConstantDecay", piecewise_constant_decay},
    ScheduleKind{"PolynomialDecay", polynomial_decay},
    ScheduleKind{"InverseTimeDecay", inverse_time_decay},
    ScheduleKind{"CosineDecay", cosine_decay},
    ScheduleKind{"CosineDecayRestarts", cosine_decay_restarts},
};

}  // namespace

Schedule make_schedule(const nlohmann::json& envelope) {
  const KerasObject opened = open_envelope(envelope, "learning_rate");
  std::vector<std::string> names;
  for (const auto& kind : k_schedules) {
    names.emplace_back(kind.class_name);
    if (opened.class_name != kind.class_name) continue;
    ConfigReader config(*opened.config, opened.class_name);
    config.ignore({"name"});
    Schedule schedule = kind.make(config);
    config.finish();
    return schedule;
  }
  throw ConfigError("learning_rate: Keras has no schedule `" + opened.class_name + "` that is supported" +
                    did_you_mean(opened.class_name, names) + " Supported: " + listed(names));
}

}  // namespace rankine
