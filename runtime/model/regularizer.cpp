#include "runtime/model/regularizer.hpp"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "runtime/error.hpp"
#include "runtime/model/config_reader.hpp"
#include "runtime/model/named_object.hpp"

namespace rankine {
namespace {

/// A factor of null is Keras's default.
double factor(ConfigReader& reader, std::string_view key, double otherwise) {
  return reader.optional<double>(key).value_or(otherwise);
}

struct Kind {
  std::string_view class_name, alias;
  Regularizer (*make)(ConfigReader& reader);
};

constexpr auto k_kinds = std::to_array<Kind>({
    {"L1", "l1",
     [](ConfigReader& reader) {
       return Regularizer{factor(reader, "l1", 0.01), 0.0};
     }},
    {"L2", "l2",
     [](ConfigReader& reader) {
       return Regularizer{0.0, factor(reader, "l2", 0.01)};
     }},
    {"L1L2", "l1_l2",
     [](ConfigReader& reader) {
       const double l1 = factor(reader, "l1", 0.0);
       return Regularizer{l1, factor(reader, "l2", 0.0)};
     }},
});

/// sum |w| in double: chains over runs of elements, and a tree over the runs.
template <class T>
double sum_of_absolutes(std::span<const T> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  constexpr std::int64_t k_run = 256;
  NodeStack<double> sums((count + k_run - 1) / k_run);
  for (std::int64_t begin = 0; begin < count; begin += k_run) {
    double sum = 0.0;
    for (std::int64_t i = begin; i < std::min(begin + k_run, count); ++i)
      sum += std::abs(static_cast<double>(values[static_cast<std::size_t>(i)]));
    sums.push({0, begin / k_run}, sum, [](double& left, double right) { left += right; });
  }
  return sums.entries().empty() ? 0.0 : sums.entries().front().value;
}

}  // namespace

double Regularizer::penalty(Backend& backend, const Tensor& value) const {
  double sum = 0.0;
  if (l1 != 0.0) {
    backend.synchronize();
    sum += l1 * (value.dtype == DType::float64 ? sum_of_absolutes<double>(value.span<double>())
                                               : sum_of_absolutes<float>(value.span<float>()));
  }
  if (l2 != 0.0) sum += l2 * backend.sum_of_squares(value);
  return sum;
}

Regularizer regularizer_from_config(const nlohmann::json& config) {
  const NamedObject object = NamedObject::from_config(config, "a regularizer");
  std::string known;
  for (const Kind& kind : k_kinds) {
    known += (known.empty() ? "" : ", ") + std::string(kind.class_name);
    if (object.name != kind.class_name && object.name != kind.alias) continue;
    ConfigReader reader(*object.config, "the regularizer " + object.name);
    const Regularizer made = kind.make(reader);
    reader.finish();
    return made;
  }
  throw ConfigError("the regularizer '" + object.name.substr(0, 64) + "' isn't supported; supported are " +
                    known);
}

}  // namespace rankine
