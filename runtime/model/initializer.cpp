#include "runtime/model/initializer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "runtime/arithmetic/random.hpp"
#include "runtime/error.hpp"
#include "runtime/model/config_reader.hpp"
#include "runtime/model/named_object.hpp"
#include "runtime/model/naming.hpp"
#include "runtime/model/normal_quantile.hpp"
#include "runtime/model/orthogonal.hpp"

namespace rankine {

using nlohmann::json;

Fans fans_of(const Shape& shape) {
  const int rank = shape.rank();
  if (rank == 0) return {1, 1};
  if (rank == 1) return {static_cast<double>(shape[0]), static_cast<double>(shape[0])};
  const auto receptive = static_cast<double>(shape.product(0, rank - 2));
  return {receptive * static_cast<double>(shape[-2]), receptive * static_cast<double>(shape[-1])};
}

namespace {

/// Calls store(i, value) for every element of `out` with value(first + i).
template <class Value>
void write_each(Tensor out, std::int64_t first, Value&& value) {
  const std::int64_t count = out.elements();
  if (out.dtype == DType::float64) {
    double* to = out.as<double>();
    for (std::int64_t i = 0; i < count; ++i) to[i] = value(first + i);
  } else {
    float* to = out.as<float>();
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(value(first + i));
  }
}

/// The random words of one variable by element; keeps the last block, since neighbours share it.
class Words {
 public:
  Words(std::uint64_t key, std::uint32_t ordinal)
      : key_(key), use_(random_word(RandomUse::initial_weight, ordinal)) {}

  std::uint32_t operator()(std::int64_t element) {
    const auto block = static_cast<std::uint64_t>(element) / 4;
    if (block != block_) {
      words_ =
          philox(key_, {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, use_});
      block_ = block;
    }
    return words_[static_cast<std::uint64_t>(element) % 4];
  }

 private:
  std::uint64_t key_;
  std::uint32_t use_;
  std::uint64_t block_ = ~std::uint64_t{0};
  std::array<std::uint32_t, 4> words_{};
};

/// The seed of a config moves the run's stream to another place: the finalizer of splitmix64 spreads its
/// bits.
std::uint64_t mixed_seed(std::uint64_t seed, std::optional<std::uint64_t> own) {
  if (!own) return seed;
  std::uint64_t z = *own + 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return seed ^ z ^ (z >> 31);
}

/// The middle of one of 2^32 equal parts of (0, 1): never 0 nor 1.
double open_unit(std::uint32_t word) {
  return (static_cast<double>(word) + 0.5) * 0x1p-32;
}

struct Distribution {
  enum class Kind : std::uint8_t { uniform, normal, truncated_normal } kind = Kind::uniform;
  double first = 0.0;   ///< lower limit, or mean
  double second = 1.0;  ///< upper limit, or standard deviation (of the normal before it is truncated)

  double operator()(std::uint32_t word) const {
    if (kind == Kind::uniform) return first + (second - first) * static_cast<double>(uniform_float(word));
    if (kind == Kind::normal) return first + second * normal_quantile(open_unit(word));
    // Keras truncates at two standard deviations: the quantile of a uniform number between both
    // probabilities.
    constexpr double k_below = 0.02275013194817920720;  // P(z < -2)
    const double probability = k_below + (1.0 - 2.0 * k_below) * open_unit(word);
    return first + second * std::clamp(normal_quantile(probability), -2.0, 2.0);
  }
};

class ConstantInitializer : public Initializer {
 public:
  explicit ConstantInitializer(double value) : value_(value) {}
  void fill(const Shape&, Fans, std::uint64_t, std::uint32_t, std::int64_t first, Tensor out) const override {
    write_each(out, first, [this](std::int64_t) { return value_; });
  }

 private:
  double value_;
};

class IdentityInitializer : public Initializer {
 public:
  explicit IdentityInitializer(double gain) : gain_(gain) {}
  void check(const Shape& global) const override {
    if (global.rank() != 2)
      throw ConfigError("the initializer Identity makes matrices, and this shape is " + global.to_string());
  }
  void fill(const Shape& global, Fans, std::uint64_t, std::uint32_t, std::int64_t first,
            Tensor out) const override {
    check(global);
    const std::int64_t columns = global[1];
    write_each(out, first, [&](std::int64_t e) { return e / columns == e % columns ? gain_ : 0.0; });
  }

 private:
  double gain_;
};

/// Independent elements of one distribution.
class DrawnInitializer : public Initializer {
 public:
  explicit DrawnInitializer(std::optional<std::uint64_t> seed) : seed_(seed) {}
  void fill(const Shape& global, Fans fans, std::uint64_t seed, std::uint32_t ordinal, std::int64_t first,
            Tensor out) const override {
    const Distribution draw = distribution(global, fans);
    Words words(mixed_seed(seed, seed_), ordinal);
    write_each(out, first, [&](std::int64_t e) { return draw(words(e)); });
  }

 protected:
  virtual Distribution distribution(const Shape& global, Fans fans) const = 0;

 private:
  std::optional<std::uint64_t> seed_;
};

class FixedDistribution : public DrawnInitializer {
 public:
  FixedDistribution(Distribution distribution, std::optional<std::uint64_t> seed)
      : DrawnInitializer(seed), distribution_(distribution) {}

 protected:
  Distribution distribution(const Shape&, Fans) const override { return distribution_; }

 private:
  Distribution distribution_;
};

struct Scaling {
  enum class Fan : std::uint8_t { in, out, average };
  double scale = 1.0;
  Fan fan = Fan::in;
  Distribution::Kind kind = Distribution::Kind::truncated_normal;
};

class VarianceScaling : public DrawnInitializer {
 public:
  using Axes = std::optional<std::vector<std::int64_t>>;
  VarianceScaling(Scaling scaling, Axes input_axes, Axes output_axes, std::optional<std::uint64_t> seed)
      : DrawnInitializer(seed),
        scaling_(scaling),
        input_axes_(std::move(input_axes)),
        output_axes_(std::move(output_axes)) {}

  void check(const Shape& global) const override {
    if (!input_axes_ || !output_axes_) return;
    for (const auto* axes : {&*input_axes_, &*output_axes_})
      for (const std::int64_t axis : *axes)
        if (axis < -global.rank() || axis >= global.rank())
          throw ConfigError("the initializer's axis " + std::to_string(axis) + " isn't in the shape " +
                            global.to_string());
  }

 protected:
  Distribution distribution(const Shape& global, Fans fans) const override {
    check(global);
    if (input_axes_ && output_axes_) fans = {product(global, *input_axes_), product(global, *output_axes_)};
    double fan = (fans.in + fans.out) / 2.0;
    if (scaling_.fan == Scaling::Fan::in) fan = fans.in;
    if (scaling_.fan == Scaling::Fan::out) fan = fans.out;
    const double variance = scaling_.scale / std::max(1.0, fan);
    switch (scaling_.kind) {
      case Distribution::Kind::uniform: {
        const double limit = std::sqrt(3.0 * variance);
        return {scaling_.kind, -limit, limit};
      }
      case Distribution::Kind::truncated_normal:
        // The divisor is the standard deviation of a normal number truncated at two of its own.
        return {scaling_.kind, 0.0, std::sqrt(variance) / 0.87962566103423978};
      case Distribution::Kind::normal:
        break;
    }
    return {scaling_.kind, 0.0, std::sqrt(variance)};
  }

 private:
  static double product(const Shape& shape, const std::vector<std::int64_t>& axes) {
    double n = 1.0;
    for (const std::int64_t axis : axes) n *= static_cast<double>(shape[static_cast<int>(axis)]);
    return n;
  }

  Scaling scaling_;
  Axes input_axes_;
  Axes output_axes_;
};

class OrthogonalInitializer : public Initializer {
 public:
  OrthogonalInitializer(double gain, std::optional<std::uint64_t> seed) : gain_(gain), seed_(seed) {}

  void check(const Shape& global) const override {
    if (global.rank() < 2)
      throw ConfigError("the initializer Orthogonal needs two dimensions or more, and this shape is " +
                        global.to_string());
  }
  void fill(const Shape& global, Fans, std::uint64_t seed, std::uint32_t ordinal, std::int64_t first,
            Tensor out) const override {
    check(global);
    const std::int64_t rows = global.product(0, global.rank() - 1);
    const std::int64_t columns = global[-1];
    // Of the tall matrix, whose columns become orthonormal; a wide variable is its transpose.
    const std::int64_t height = std::max(rows, columns);
    const std::int64_t width = std::min(rows, columns);
    std::vector<double> q(static_cast<std::size_t>(height * width));
    Words words(mixed_seed(seed, seed_), ordinal);
    for (std::int64_t e = 0; e < height * width; ++e)
      q[static_cast<std::size_t>(e % width * height + e / width)] = normal_quantile(open_unit(words(e)));
    orthonormalize(q, height);
    const bool wide = rows < columns;
    write_each(out, first, [&](std::int64_t e) {
      const std::int64_t row = wide ? e % columns : e / columns;
      const std::int64_t column = wide ? e / columns : e % columns;
      return gain_ * q[static_cast<std::size_t>(column * height + row)];
    });
  }

 private:
  double gain_;
  std::optional<std::uint64_t> seed_;
};

/// null, an integer, or the envelope of a SeedGenerator with one.
std::optional<std::uint64_t> read_seed(ConfigReader& reader) {
  const json* value = reader.raw("seed");
  if (value != nullptr && value->is_object() && value->value("class_name", json()) == "SeedGenerator" &&
      value->contains("config") && (*value)["config"].is_object())
    value = &(*value)["config"]["seed"];
  if (value == nullptr || value->is_null()) return std::nullopt;
  if (!value->is_number_integer()) reader.refuse("has a seed that is neither an integer nor null");
  return value->get<std::uint64_t>();
}

using Made = std::shared_ptr<const Initializer>;

Made make_fixed(ConfigReader& reader, Distribution distribution) {
  return std::make_shared<FixedDistribution>(distribution, read_seed(reader));
}

Made make_scaling(ConfigReader& reader, Scaling scaling) {
  auto input_axes = reader.optional<std::vector<std::int64_t>>("input_axes");
  auto output_axes = reader.optional<std::vector<std::int64_t>>("output_axes");
  return std::make_shared<VarianceScaling>(scaling, std::move(input_axes), std::move(output_axes),
                                           read_seed(reader));
}

using Kind = Distribution::Kind;

Made make_variance_scaling(ConfigReader& reader) {
  Scaling scaling;
  scaling.scale = reader.get<double>("scale", 1.0);
  if (!(scaling.scale > 0.0)) reader.refuse("needs a scale above 0");
  const auto mode = reader.get<std::string>("mode", "fan_in");
  if (mode == "fan_in") {
    scaling.fan = Scaling::Fan::in;
  } else if (mode == "fan_out") {
    scaling.fan = Scaling::Fan::out;
  } else if (mode == "fan_avg") {
    scaling.fan = Scaling::Fan::average;
  } else {
    reader.refuse("has mode '" + mode + "', which must be fan_in, fan_out or fan_avg");
  }
  const auto distribution = reader.get<std::string>("distribution", "truncated_normal");
  if (distribution == "truncated_normal" || distribution == "normal") {
    scaling.kind = Kind::truncated_normal;
  } else if (distribution == "untruncated_normal") {
    scaling.kind = Kind::normal;
  } else if (distribution == "uniform") {
    scaling.kind = Kind::uniform;
  } else {
    reader.refuse("has distribution '" + distribution +
                  "', which must be truncated_normal, untruncated_normal or uniform");
  }
  return make_scaling(reader, scaling);
}

Made make_constant(ConfigReader& reader) {
  return std::make_shared<ConstantInitializer>(reader.get<double>("value", 0.0));
}
Made make_random_uniform(ConfigReader& reader) {
  const double low = reader.get<double>("minval", -0.05);
  return make_fixed(reader, {Kind::uniform, low, reader.get<double>("maxval", 0.05)});
}
template <Kind k_kind>
Made make_random_normal(ConfigReader& reader) {
  const double mean = reader.get<double>("mean", 0.0);
  return make_fixed(reader, {k_kind, mean, reader.get<double>("stddev", 0.05)});
}
template <int k_scale, Scaling::Fan k_fan, Kind k_kind>
Made make_named_scaling(ConfigReader& reader) {
  return make_scaling(reader, {static_cast<double>(k_scale), k_fan, k_kind});
}

struct InitializerKind {
  std::string_view class_name;
  std::string_view alias;  ///< besides the class name and its snake case
  Made (*make)(ConfigReader& reader);
};

using Fan = Scaling::Fan;
constexpr InitializerKind k_kinds[] = {
    {"Zeros", "zero", [](ConfigReader&) -> Made { return std::make_shared<ConstantInitializer>(0.0); }},
    {"Ones", "one", [](ConfigReader&) -> Made { return std::make_shared<ConstantInitializer>(1.0); }},
    {"Constant", "", make_constant},
    {"RandomUniform", "uniform", make_random_uniform},
    {"RandomNormal", "normal", make_random_normal<Kind::normal>},
    {"TruncatedNormal", "", make_random_normal<Kind::truncated_normal>},
    {"VarianceScaling", "", make_variance_scaling},
    {"GlorotUniform", "", make_named_scaling<1, Fan::average, Kind::uniform>},
    {"GlorotNormal", "", make_named_scaling<1, Fan::average, Kind::truncated_normal>},
    {"HeUniform", "", make_named_scaling<2, Fan::in, Kind::uniform>},
    {"HeNormal", "", make_named_scaling<2, Fan::in, Kind::truncated_normal>},
    {"LecunUniform", "", make_named_scaling<1, Fan::in, Kind::uniform>},
    {"LecunNormal", "", make_named_scaling<1, Fan::in, Kind::truncated_normal>},
    {"Orthogonal", "OrthogonalInitializer",
     [](ConfigReader& reader) -> Made {
       const double gain = reader.get<double>("gain", 1.0);
       return std::make_shared<OrthogonalInitializer>(gain, read_seed(reader));
     }},
    {"Identity", "IdentityInitializer",
     [](ConfigReader& reader) -> Made {
       return std::make_shared<IdentityInitializer>(reader.get<double>("gain", 1.0));
     }},
};

const InitializerKind* find_kind(const std::string& name) {
  for (const InitializerKind& kind : k_kinds)
    if (name == kind.class_name || name == to_snake_case(kind.class_name) ||
        (!kind.alias.empty() && name == kind.alias))
      return &kind;
  return nullptr;
}

}  // namespace

std::shared_ptr<const Initializer> initializer_from_config(const json& config) {
  const NamedObject object = NamedObject::from_config(config, "an initializer");
  const InitializerKind* kind = find_kind(object.name);
  if (kind == nullptr) {
    std::string known;
    for (const InitializerKind& each : k_kinds)
      known += (known.empty() ? "" : ", ") + std::string(each.class_name);
    throw ConfigError("the initializer '" + object.name.substr(0, 64) + "' isn't supported; supported are " +
                      known);
  }
  ConfigReader reader(*object.config, "the initializer " + std::string(kind->class_name));
  Made made = kind->make(reader);
  reader.finish();
  return made;
}

}  // namespace rankine
