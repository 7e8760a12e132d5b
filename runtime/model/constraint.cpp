#include "runtime/model/constraint.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "runtime/arithmetic/leaf.hpp"
#include "runtime/error.hpp"
#include "runtime/model/config_reader.hpp"
#include "runtime/model/named_object.hpp"
#include "runtime/model/naming.hpp"

namespace rankine {
namespace {

template <class F>
void with_elements(const Tensor& value, const F& f) {
  if (value.dtype == DType::float64)
    f(value.span<double>());
  else
    f(value.span<float>());
}

/// max(w, 0)
class NonNegative final : public Constraint {
 public:
  void apply(const Tensor& value) const override {
    with_elements(value, [](auto elements) {
      for (auto& w : elements) w = w < 0 ? 0 : w;
    });
  }
};

/// A tensor as vectors along some of its axes: element (k, s) is at kept[k] + summed[s].
struct Vectors {
  std::vector<std::int64_t> kept = {0}, summed = {0};

  Vectors(const Shape& shape, const std::vector<bool>& along) {
    std::int64_t stride = shape.elements();
    for (int d = 0; d < shape.rank(); ++d) {
      stride /= std::max<std::int64_t>(shape[d], 1);
      std::vector<std::int64_t>& places = along[static_cast<std::size_t>(d)] ? summed : kept;
      std::vector<std::int64_t> next;
      for (const std::int64_t place : places)
        for (std::int64_t i = 0; i < shape[d]; ++i) next.push_back(place + i * stride);
      places = std::move(next);
    }
  }
};

/// The norms of all vectors. Squares are added leaf by leaf in double, one tree over the leaves.
template <class T>
std::vector<double> norms_of(std::span<const T> elements, const Vectors& vectors) {
  const auto count = static_cast<std::int64_t>(vectors.summed.size());
  const auto add = [](std::vector<double>& left, const std::vector<double>& right) {
    for (std::size_t k = 0; k < left.size(); ++k) left[k] += right[k];
  };
  const std::int64_t leaf = feature_leaf(count);
  NodeStack<std::vector<double>> sums((count + leaf - 1) / leaf);
  for (std::int64_t begin = 0; begin < count; begin += leaf) {
    std::vector<double> sum(vectors.kept.size(), 0.0);
    for (std::int64_t s = begin; s < std::min(begin + leaf, count); ++s)
      for (std::size_t k = 0; k < sum.size(); ++k) {
        const std::int64_t at = vectors.kept[k] + vectors.summed[static_cast<std::size_t>(s)];
        const double w = elements[static_cast<std::size_t>(at)];
        sum[k] += w * w;
      }
    sums.push({0, begin / leaf}, std::move(sum), add);
  }
  std::vector<double> norms = std::move(sums.entries().front().value);
  for (double& norm : norms) norm = std::sqrt(norm);
  return norms;
}

/// Gives each vector along `axes` the norm that `wanted` says, in Keras's formula w * wanted / (1e-7 + norm).
class NormConstraint : public Constraint {
 public:
  struct Bounds {
    std::optional<double> least, most;  ///< both absent: norm 1
    double rate = 1.0;
  };
  NormConstraint(std::vector<std::int64_t> axes, Bounds bounds) : axes_(std::move(axes)), bounds_(bounds) {}

  void check(const Shape& shape) const override {
    for (const std::int64_t axis : axes_)
      if (axis < -shape.rank() || axis >= shape.rank())
        throw ConfigError("the constraint's axis " + std::to_string(axis) + " isn't in the shape " +
                          shape.to_string());
  }

  void apply(const Tensor& value) const override {
    if (value.elements() == 0) return;
    std::vector<bool> along(static_cast<std::size_t>(value.shape.rank()), false);
    for (const std::int64_t axis : axes_)
      along[static_cast<std::size_t>(axis < 0 ? axis + value.shape.rank() : axis)] = true;
    const Vectors vectors(value.shape, along);
    with_elements(value, [&]<class T>(std::span<T> elements) {
      constexpr double k_epsilon = 1e-7;
      const std::vector<double> norms = norms_of<T>(elements, vectors);
      std::vector<T> scales;
      for (const double norm : norms) scales.push_back(static_cast<T>(wanted(norm) / (k_epsilon + norm)));
      for (const std::int64_t s : vectors.summed)
        for (std::size_t k = 0; k < scales.size(); ++k)
          elements[static_cast<std::size_t>(vectors.kept[k] + s)] *= scales[k];
    });
  }

 private:
  double wanted(double norm) const {
    if (!bounds_.most) return 1.0;
    return bounds_.rate * std::min(std::max(norm, *bounds_.least), *bounds_.most) +
           (1.0 - bounds_.rate) * norm;
  }

  std::vector<std::int64_t> axes_;
  Bounds bounds_;
};

/// An integer or a list of them.
std::vector<std::int64_t> read_axes(ConfigReader& reader) {
  const nlohmann::json* axis = reader.raw("axis");
  if (axis != nullptr && axis->is_array()) return reader.required<std::vector<std::int64_t>>("axis");
  return {reader.get<std::int64_t>("axis", 0)};
}

using Made = std::shared_ptr<const Constraint>;

struct Kind {
  std::string_view class_name;
  Made (*make)(ConfigReader& reader);
};

constexpr auto k_kinds = std::to_array<Kind>({
    {"MaxNorm",
     [](ConfigReader& reader) -> Made {
       NormConstraint::Bounds bounds{0.0, reader.get<double>("max_value", 2.0)};
       return std::make_shared<NormConstraint>(read_axes(reader), bounds);
     }},
    {"MinMaxNorm",
     [](ConfigReader& reader) -> Made {
       NormConstraint::Bounds bounds;
       bounds.least = reader.get<double>("min_value", 0.0);
       bounds.most = reader.get<double>("max_value", 1.0);
       bounds.rate = reader.get<double>("rate", 1.0);
       return std::make_shared<NormConstraint>(read_axes(reader), bounds);
     }},
    {"NonNeg", [](ConfigReader&) -> Made { return std::make_shared<NonNegative>(); }},
    {"UnitNorm",
     [](ConfigReader& reader) -> Made {
       return std::make_shared<NormConstraint>(read_axes(reader), NormConstraint::Bounds{});
     }},
});

}  // namespace

std::shared_ptr<const Constraint> constraint_from_config(const nlohmann::json& config) {
  const NamedObject object = NamedObject::from_config(config, "a constraint");
  std::string known;
  for (const Kind& kind : k_kinds) {
    known += (known.empty() ? "" : ", ") + std::string(kind.class_name);
    if (object.name != kind.class_name && object.name != to_snake_case(kind.class_name)) continue;
    ConfigReader reader(*object.config, "the constraint " + object.name);
    Made made = kind.make(reader);
    reader.finish();
    return made;
  }
  throw ConfigError("the constraint '" + object.name.substr(0, 64) + "' isn't supported; supported are " +
                    known);
}

}  // namespace rankine
