#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "runtime/error.hpp"
#include "runtime/model/initializer.hpp"
#include "runtime/model/normal_quantile.hpp"
#include "runtime/model/orthogonal.hpp"

using namespace rankine;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

template <class T>
std::vector<T> part(const json& config, const Shape& shape, std::int64_t first, std::int64_t count,
                    std::uint64_t seed = 7, std::uint32_t ordinal = 0) {
  std::vector<T> values(static_cast<std::size_t>(count));
  initializer_from_config(config)->fill(shape, fans_of(shape), seed, ordinal, first,
                                        {values.data(), dtype_of<T>, Shape{count}});
  return values;
}

std::vector<double> whole(const json& config, const Shape& shape, std::uint64_t seed = 7,
                          std::uint32_t ordinal = 0) {
  return part<double>(config, shape, 0, shape.elements(), seed, ordinal);
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double v : values) most = std::max(most, std::fabs(v));
  return most;
}

struct Moments {
  double mean = 0, deviation = 0, kurtosis = 0;
};
Moments moments(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  Moments m;
  m.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double second = 0, fourth = 0;
  for (const double v : values) {
    const double d = (v - m.mean) * (v - m.mean);
    second += d;
    fourth += d * d;
  }
  m.deviation = std::sqrt(second / n);
  m.kurtosis = n * fourth / (second * second);
  return m;
}

json envelope(const char* class_name, json config = json::object()) {
  return {{"module", "keras.initializers"},
          {"class_name", class_name},
          {"config", std::move(config)},
          {"registered_name", nullptr}};
}

const char* const k_all[] = {
    "Zeros",           "Ones",          "Constant",     "RandomUniform", "RandomNormal", "TruncatedNormal",
    "VarianceScaling", "GlorotUniform", "GlorotNormal", "HeUniform",     "HeNormal",     "LecunUniform",
    "LecunNormal",     "Orthogonal",    "Identity"};

}  // namespace

TEST_CASE("fans follow Keras's convolution rule", "[model][initializer]") {
  const auto check = [](const Shape& shape, double in, double out) {
    CHECK(fans_of(shape).in == in);
    CHECK(fans_of(shape).out == out);
  };
  check({}, 1, 1);
  check({5}, 5, 5);
  check({8, 16}, 8, 16);
  check({3, 8, 16}, 24, 48);
  check({8, 2, 4}, 16, 32);
  check({2, 4, 8}, 8, 16);
}

TEST_CASE("uniform limits are those of keras.md I.20", "[model][initializer]") {
  const auto limit = [](const Shape& shape, Fans fans) {
    std::vector<double> values(static_cast<std::size_t>(shape.elements()));
    initializer_from_config("glorot_uniform")
        ->fill(shape, fans, 1, 0, 0, {values.data(), DType::float64, shape});
    // The limit of n uniform numbers is missed by less than 20 / n but for 2e-9 of all seeds.
    const auto margin = std::max(0.0, 1.0 - 20.0 / static_cast<double>(values.size()));
    return std::pair(largest(values) * margin, largest(values));
  };
  const auto check = [&](const Shape& shape, Fans fans, double expected) {
    const auto [low, high] = limit(shape, fans);
    CAPTURE(shape.to_string(), high, expected);
    CHECK(high <= expected * (1 + 1e-6));
    CHECK(low <= expected);
    CHECK(high >= expected * (1.0 - 20.0 / static_cast<double>(shape.elements())));
  };
  check({8, 16}, fans_of({8, 16}), 0.5);
  check({512, 8, 64}, {512, 512}, 0.07654655);
  check({8, 64, 512}, {512, 512}, 0.07654655);
  check({256, 1024}, fans_of({256, 1024}), 0.06846532);
  check({8, 2, 4}, fans_of({8, 2, 4}), 0.3535534);
  check({2, 4, 8}, fans_of({2, 4, 8}), 0.5);
  check({512, 8, 64}, fans_of({512, 8, 64}), 0.01275776);
  check({8, 64, 512}, fans_of({8, 64, 512}), 0.03608439);
}

TEST_CASE("axes in a config take the place of the layer's fans", "[model][initializer]") {
  const json axes = {{"input_axes", {0}}, {"output_axes", {1, -1}}};
  const auto values = whole(envelope("GlorotUniform", axes), {512, 8, 64});
  CHECK(largest(values) == Approx(0.07654655).epsilon(1e-4));
  CHECK_THROWS_WITH(initializer_from_config(envelope("HeNormal", {{"input_axes", {3}}, {"output_axes", {0}}}))
                        ->check(Shape{2, 2}),
                    Contains("axis 3") && Contains("(2, 2)"));
}

TEST_CASE("distributions have their moments", "[model][initializer]") {
  const Shape shape{400, 500};
  const auto check = [&](const json& config, double mean, double deviation, double kurtosis, double most) {
    CAPTURE(config.dump());
    const auto values = whole(config, shape);
    const Moments m = moments(values);
    CHECK(std::fabs(m.mean - mean) < 5 * deviation / std::sqrt(2e5));
    CHECK(m.deviation == Approx(deviation).epsilon(0.01));
    CHECK(m.kurtosis == Approx(kurtosis).epsilon(0.02));
    if (most > 0) {
      double farthest = 0;
      for (const double v : values) farthest = std::max(farthest, std::fabs(v - mean));
      CHECK(farthest <= most);
      CHECK(farthest > 0.99 * most);
    }
  };
  const double truncated = 0.87962566103423978;  // deviation of a normal number truncated at 2
  const double flat = 2.3655;                    // its kurtosis
  check("uniform", 0, 0.1 / std::sqrt(12.0), 1.8, 0.05);
  check(envelope("RandomUniform", {{"minval", 1.0}, {"maxval", 3.0}}), 2, 2 / std::sqrt(12.0), 1.8, 1.0);
  check("normal", 0, 0.05, 3, 0);
  check(envelope("RandomNormal", {{"mean", 2.0}, {"stddev", 0.5}}), 2, 0.5, 3, 0);
  check(envelope("TruncatedNormal", {{"mean", 1.0}, {"stddev", 0.5}}), 1, 0.5 * truncated, flat, 1.0);
  check("glorot_uniform", 0, std::sqrt(2.0 / 900), 1.8, std::sqrt(6.0 / 900));
  check("glorot_normal", 0, std::sqrt(2.0 / 900), flat, 2 * std::sqrt(2.0 / 900) / truncated);
  check("he_uniform", 0, std::sqrt(2.0 / 400), 1.8, std::sqrt(6.0 / 400));
  check("he_normal", 0, std::sqrt(2.0 / 400), flat, 2 * std::sqrt(2.0 / 400) / truncated);
  check("lecun_uniform", 0, std::sqrt(1.0 / 400), 1.8, std::sqrt(3.0 / 400));
  check("lecun_normal", 0, std::sqrt(1.0 / 400), flat, 2 * std::sqrt(1.0 / 400) / truncated);
  check(envelope("VarianceScaling",
                 {{"scale", 3.0}, {"mode", "fan_out"}, {"distribution", "untruncated_normal"}, {"seed", 3}}),
        0, std::sqrt(3.0 / 500), 3, 0);
  check(envelope("VarianceScaling", {{"mode", "fan_avg"}, {"distribution", "uniform"}}), 0,
        std::sqrt(1.0 / 450), 1.8, std::sqrt(3.0 / 450));
}

TEST_CASE("constants are what they say", "[model][initializer]") {
  CHECK(whole("zeros", {2, 2}) == std::vector<double>(4, 0.0));
  CHECK(whole("one", {3}) == std::vector<double>(3, 1.0));
  CHECK(whole(envelope("Constant", {{"value", -0.25}}), {2}) == std::vector<double>(2, -0.25));
  CHECK(whole(envelope("Identity", {{"gain", 2.0}}), {2, 3}) == std::vector<double>{2, 0, 0, 0, 2, 0});
  CHECK_THROWS_AS(whole("identity", {4}), ConfigError);
  CHECK_THROWS_WITH(initializer_from_config("orthogonal")->check(Shape{4}), Contains("(4,)"));
}

TEST_CASE("any part of a variable equals that part of the whole", "[model][initializer]") {
  const Shape shape{13, 11};
  for (const char* name : k_all) {
    CAPTURE(name);
    const auto all = part<float>(envelope(name), shape, 0, shape.elements());
    for (const auto& [first, count] : {std::pair(0, 1), {3, 8}, {5, 61}, {142, 1}, {77, 0}}) {
      const auto some = part<float>(envelope(name), shape, first, count);
      if (count > 0) CHECK(std::memcmp(some.data(), all.data() + first, some.size() * sizeof(float)) == 0);
    }
    // float64 is the same number before it is rounded.
    const auto wide = whole(envelope(name), shape);
    for (std::size_t i = 0; i < all.size(); ++i) REQUIRE(static_cast<float>(wide[i]) == all[i]);
  }
}

TEST_CASE("variables and seeds have streams of their own", "[model][initializer]") {
  const Shape shape{100, 100};
  const auto correlation = [](const std::vector<double>& a, const std::vector<double>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0) /
           std::sqrt(std::inner_product(a.begin(), a.end(), a.begin(), 0.0) *
                     std::inner_product(b.begin(), b.end(), b.begin(), 0.0));
  };
  const json seeded = envelope("RandomNormal", {{"seed", 5}});
  const json generator =
      envelope("RandomNormal",
               {{"seed", {{"class_name", "SeedGenerator"}, {"config", {{"name", "g"}, {"seed", 5}}}}}});
  const std::vector<std::vector<double>> streams = {
      whole("normal", shape, 7, 0), whole("normal", shape, 7, 1), whole("normal", shape, 8, 0),
      whole(seeded, shape, 7, 0), whole(envelope("RandomNormal", {{"seed", -1}}), shape, 7, 0)};
  for (std::size_t i = 0; i < streams.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) CHECK(std::fabs(correlation(streams[i], streams[j])) < 0.05);
  CHECK(whole("normal", shape, 7, 0) == streams[0]);
  CHECK(whole(generator, shape, 7, 0) == streams[3]);
}

TEST_CASE("Orthogonal has orthonormal rows or columns", "[model][initializer]") {
  const auto check = [](const Shape& shape) {
    CAPTURE(shape.to_string());
    const std::int64_t columns = shape[-1];
    const std::int64_t rows = shape.elements() / columns;
    const auto q = whole(envelope("Orthogonal", {{"gain", 3.0}}), shape);
    const std::int64_t few = std::min(rows, columns), many = std::max(rows, columns);
    const auto at = [&](std::int64_t vector, std::int64_t i) {
      return q[static_cast<std::size_t>(rows <= columns ? vector * columns + i : i * columns + vector)];
    };
    for (std::int64_t a = 0; a < few; ++a)
      for (std::int64_t b = 0; b <= a; ++b) {
        double dot = 0;
        for (std::int64_t i = 0; i < many; ++i) dot += at(a, i) * at(b, i);
        REQUIRE(dot == Approx(a == b ? 9.0 : 0.0).margin(1e-13));
      }
  };
  check({6, 6});
  check({40, 7});
  check({7, 40});
  check({2, 5, 4});
  check({1, 3});
}

TEST_CASE("a nearly dependent matrix is still made orthonormal", "[model][initializer]") {
  // Columns that agree but for 1e-9 lose half their digits in one pass of Gram-Schmidt.
  std::vector<double> columns = {1, 1e-9, 0, 1, 0, 1e-9, 1, 0, 0};
  orthonormalize(columns, 3);
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b) {
      double dot = 0;
      for (int i = 0; i < 3; ++i)
        dot += columns[static_cast<std::size_t>(3 * a + i)] * columns[static_cast<std::size_t>(3 * b + i)];
      CHECK(dot == Approx(a == b ? 1.0 : 0.0).margin(1e-14));
    }
}

TEST_CASE("the normal quantile is exact to a few units", "[model][initializer]") {
  // From mpmath with 40 digits.
  const std::pair<double, double> k_table[] = {
      {0.5, 0.0},
      {0.975, 1.959963984540054},
      {0.025, -1.959963984540054},
      {0.075, -1.439531470938456},
      {0.0749, -1.4402382675279637},
      {0.0227501319481792, -2.0},
      {1e-6, -4.753424308822899},
      {0x1p-33, -6.337957754553794},
  };
  for (const auto& [p, z] : k_table) {
    CAPTURE(p);
    CHECK(normal_quantile(p) == Approx(z).epsilon(2e-15).margin(1e-16));
  }
  for (const double x : {1.0, 0.5, 2.0, 1e-300, 0.7071, 1.41421, 1.41422, 3e7, 0x1p-33})
    CHECK(portable_log(x) == Approx(std::log(x)).epsilon(4e-16).margin(1e-17));
}

TEST_CASE("first weights keep their bits", "[model][initializer]") {
  // Part of what a seed means: a change here changes every run. Values are this definition's own.
  const auto normal = part<float>("normal", {1000}, 997, 3, 42, 5);
  const auto uniform = part<float>("glorot_uniform", {8, 16}, 125, 3, 42, 5);
  CHECK(normal == std::vector<float>{0x1.01d25cp-10F, 0x1.7bc39cp-6F, -0x1.1f00e2p-5F});
  CHECK(uniform == std::vector<float>{0x1.6e4f7cp-2F, -0x1.6a04b4p-2F, 0x1.5453acp-2F});
  CHECK(part<double>("he_normal", {8, 16}, 100, 1, 42, 5)[0] == -0x1.5c4b3d371395ap-1);
  CHECK(part<double>("orthogonal", {8, 16}, 100, 1, 42, 5)[0] == 0x1.8023a002e0a18p-2);
}

TEST_CASE("initializers that can't be used are named", "[model][initializer]") {
  CHECK_THROWS_WITH(initializer_from_config("stft"), Contains("'stft'") && Contains("Orthogonal, Identity"));
  CHECK_THROWS_WITH(initializer_from_config(json::object()), Contains("class_name"));
  json custom = envelope("Zeros");
  custom["registered_name"] = "mine>Zeros";
  CHECK_THROWS_WITH(initializer_from_config(custom), Contains("mine>Zeros"));
  CHECK_THROWS_WITH(initializer_from_config(envelope("RandomNormal", {{"std", 1.0}})), Contains("'std'"));
  CHECK_THROWS_WITH(initializer_from_config(envelope("VarianceScaling", {{"mode", "fan"}})),
                    Contains("fan_avg"));
  CHECK_THROWS_WITH(initializer_from_config(envelope("VarianceScaling", {{"scale", 0}})),
                    Contains("above 0"));
  CHECK_THROWS_WITH(initializer_from_config(envelope("VarianceScaling", {{"distribution", "cauchy"}})),
                    Contains("untruncated_normal"));
  CHECK_THROWS_WITH(initializer_from_config(envelope("HeNormal", {{"seed", "x"}})), Contains("seed"));
  CHECK_THROWS_WITH(initializer_from_config(envelope("Constant", {{"value", {1, 2}}})), Contains("a number"));
}
