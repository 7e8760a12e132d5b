#include "runtime/arithmetic/activation_reference.hpp"
#include "runtime/arithmetic/random.hpp"
#include "test/compute/backends.hpp"

using namespace rankine;
using namespace rankine::testing;

namespace {

constexpr std::int64_t k_sizes[] = {0, 1, 15, 16, 17, 100, 40000};

/// Every kind with its default parameters, and relu with all of its own.
std::vector<ActivationFunction> activations() {
  std::vector<ActivationFunction> all;
  for (int kind = 0; kind <= static_cast<int>(ActivationKind::reciprocal); ++kind) {
    ActivationFunction f;
    f.kind = static_cast<ActivationKind>(kind);
    if (f.kind == ActivationKind::leaky_relu) f.negative_slope = 0.2;
    if (f.kind == ActivationKind::squareplus) f.alpha = 4.0;
    if (f.kind == ActivationKind::celu) f.alpha = 0.7;
    if (f.kind == ActivationKind::hard_shrink || f.kind == ActivationKind::soft_shrink ||
        f.kind == ActivationKind::threshold) {
      f.threshold = 0.5;
    }
    all.push_back(f);
  }
  for (const double slope : {0.0, 0.1}) {
    for (const double maximum : {-1.0, 6.0, 2.0}) {
      for (const double threshold : {0.0, 1.0, -1.0}) {
        all.push_back({ActivationKind::relu, slope, maximum, threshold, 1.0});
      }
    }
  }
  return all;
}

}  // namespace

TEMPLATE_TEST_CASE("activations equal their scalar definition", "[elementwise]", float, double) {
  using T = TestType;
  std::mt19937 random(1);
  for (const auto& f : activations()) {
    for (const auto family : k_families) {
      auto x = random_array<T>(random, 300, family);
      for (const T kink : {-3, -1, 0, 1, 2, 3, 6}) x.push_back(kink);
      for (const T kink : {-0.5, 0.5, -0.0, 1e-30, -1e-30, 90.0, -90.0, -104.0}) x.push_back(kink);
      const auto dy = random_array<T>(random, static_cast<std::int64_t>(x.size()), family);
      std::vector<T> y, dx;
      for (std::size_t i = 0; i < x.size(); ++i) {
        y.push_back(reference::activation(f, x[i]));
        dx.push_back(dy[i] * reference::activation_slope(f, x[i]));
      }
      const Shape shape{static_cast<std::int64_t>(x.size())};
      for (const auto set : instruction_sets()) {
        INFO(name_of(set) << ", kind " << static_cast<int>(f.kind));
        const auto backend = make_cpu_backend(1, set);
        std::vector<T> got(x.size());
        backend->activation(f, tensor_of(x, shape), tensor_of(got, shape));
        check_equal(got, y);
        backend->activation_gradient(f, tensor_of(x, shape), tensor_of(dy, shape), tensor_of(got, shape));
        check_equal(got, dx);
      }
    }
  }
}

TEST_CASE("activation slopes are the derivatives", "[elementwise]") {
  for (const auto& f : activations()) {
    for (const double x : {-4.3, -2.2, -0.71, -0.2, 0.13, 0.6, 1.3, 2.7, 5.1, 7.9}) {
      constexpr double h = 1e-5;
      const double rise = reference::activation(f, x + h) - reference::activation(f, x - h);
      INFO("kind " << static_cast<int>(f.kind) << " at " << x);
      CHECK(reference::activation_slope(f, x) == Approx(rise / (2 * h)).margin(1e-8).epsilon(1e-6));
    }
  }
}

TEST_CASE("activations are Keras's", "[elementwise]") {
  // keras.md I.18
  const struct {
    ActivationFunction f;
    float x, y;
  } facts[] = {
      {{ActivationKind::gelu}, -1, -0.1586553F}, {{ActivationKind::gelu_tanh}, -1, -0.158808F},
      {{ActivationKind::gelu}, 3, 2.99595F},     {{ActivationKind::gelu_tanh}, 3, 2.996363F},
      {{ActivationKind::silu}, -3, -0.1422776F}, {{ActivationKind::hard_sigmoid}, -1, 0.3333333F},
      {{ActivationKind::mish}, 1, 0.8650985F},   {{ActivationKind::leaky_relu, 0.2}, -1, -0.2F},
      {{ActivationKind::selu}, -1, -1.111331F},  {{ActivationKind::squareplus, 0, -1, 0, 4.0}, 1, 1.618034F}};
  const auto backend = best_backend();
  for (const auto& fact : facts) {
    float x = fact.x, y = 0;
    backend->activation(fact.f, {&x, DType::float32, {1}}, {&y, DType::float32, {1}});
    CHECK(y == Approx(fact.y).epsilon(1e-6));
  }
}

TEMPLATE_TEST_CASE("the larger and the smaller of two, and their gradients", "[elementwise]", float, double) {
  using T = TestType;
  constexpr T k_nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> a = {1, 2, -3, 0, k_nan, 1}, b = {2, 1, -3, -1, 1, k_nan}, dy = {1, 2, 4, 8, 16, 32};
  const Shape shape{6};
  each_backend([&](Backend& backend) {
    std::vector<T> got(6);
    backend.extremum(Extremum::maximum, tensor_of(a, shape), tensor_of(b, shape), tensor_of(got, shape));
    check_equal(got, std::vector<T>{2, 2, -3, 0, k_nan, k_nan});
    backend.extremum(Extremum::minimum, tensor_of(a, shape), tensor_of(b, shape), tensor_of(got, shape));
    check_equal(got, std::vector<T>{1, 1, -3, -1, k_nan, k_nan});
    const auto gradient = [&](Extremum kind) {
      backend.extremum_gradient(kind, tensor_of(a, shape), tensor_of(b, shape), tensor_of(dy, shape),
                                tensor_of(got, shape));
    };
    gradient(Extremum::maximum);
    check_equal(got, std::vector<T>{0, 2, 2, 8, 0, 0});
    gradient(Extremum::minimum);
    check_equal(got, std::vector<T>{1, 0, 2, 0, 0, 0});
  });
}

TEMPLATE_TEST_CASE("elementwise kernels do what they say", "[elementwise]", float, double) {
  using T = TestType;
  std::mt19937 random(2);
  each_backend([&](Backend& backend) {
    for (const auto n : k_sizes) {
      const auto a = random_array<T>(random, n, Family::special),
                 b = random_array<T>(random, n, Family::special);
      std::vector<T> sum(a.size()), product(a.size()), scaled(a.size()), got(a.size());
      for (std::size_t i = 0; i < a.size(); ++i) {
        sum[i] = a[i] + b[i];
        product[i] = a[i] * b[i];
        scaled[i] = a[i] * T(0.3);
      }
      backend.add(tensor_of(a, {n}), tensor_of(b, {n}), tensor_of(got, {n}));
      check_equal(got, sum);
      backend.multiply(tensor_of(a, {n}), tensor_of(b, {n}), tensor_of(got, {n}));
      check_equal(got, product);
      got = a;
      backend.scale(tensor_of(got, {n}), 0.3, tensor_of(got, {n}));
      check_equal(got, scaled);
    }
  });
}

TEMPLATE_TEST_CASE("a bias is added to each row", "[elementwise]", float, double) {
  using T = TestType;
  std::mt19937 random(3);
  each_backend([&](Backend& backend) {
    for (const auto& [rows, columns] : {std::pair{0, 5}, {3, 0}, {1, 1}, {7, 33}, {700, 37}}) {
      auto x = random_array<T>(random, rows * columns);
      const auto bias = random_array<T>(random, columns);
      auto want = x;
      for (std::size_t i = 0; i < want.size(); ++i) want[i] += bias[i % bias.size()];
      const Tensor in_place = tensor_of(x, {rows, columns});
      backend.add_bias(in_place, tensor_of(bias, {columns}), in_place);
      check_equal(x, want);
    }
  });
}

TEMPLATE_TEST_CASE("dropout drops by global index", "[elementwise]", float, double) {
  using T = TestType;
  std::mt19937 random(4);
  const DropoutMask mask{0.3, 0x123456789abcdefULL, 5, 17, 3};
  for (const std::int64_t features : {1, 4, 63, 64, 65, 20000}) {
    constexpr std::int64_t k_samples = 3;
    auto x = random_array<T>(random, k_samples * features);
    x[0] = std::numeric_limits<T>::quiet_NaN();
    std::vector<T> want;
    for (std::int64_t i = 0; i < k_samples * features; ++i) {
      const std::int64_t sample = i / features, e = i % features;
      const auto words =
          philox(mask.seed, {static_cast<std::uint32_t>(e / 4), static_cast<std::uint32_t>(5 + sample), 17,
                             random_word(RandomUse::dropout, 3)});
      const float u = uniform_float(words[static_cast<std::size_t>(e % 4)]);
      want.push_back(u >= 0.3 ? x[static_cast<std::size_t>(i)] * static_cast<T>(1.0 / 0.7) : T(0));
    }
    each_backend([&](Backend& backend) {
      std::vector<T> got(x.size());
      backend.dropout(mask, tensor_of(x, {k_samples, features}), tensor_of(got, {k_samples, features}));
      check_equal(got, want);
      // A part of the batch drops what the whole drops there.
      DropoutMask last = mask;
      last.first_sample += 2;
      backend.dropout(last, tensor_of(x, {k_samples, features}).rows(2, 3),
                      tensor_of(got, {k_samples, features}).rows(0, 1));
      CHECK(same_bits(got[0], want[static_cast<std::size_t>(2 * features)]));
    });
  }
}

TEST_CASE("dropout keeps what it should on average", "[elementwise]") {
  constexpr std::int64_t n = 200000;
  std::vector<float> x(n, 1.0F), y(n);
  best_backend()->dropout({0.25, 9, 0, 1, 0}, tensor_of(x, {1, n}), tensor_of(y, {1, n}));
  const auto kept = std::count_if(y.begin(), y.end(), [](float v) { return v != 0; });
  CHECK(static_cast<double>(kept) / n == Approx(0.75).margin(0.005));
  best_backend()->dropout({0.0, 9, 0, 1, 0}, tensor_of(x, {1, n}), tensor_of(y, {1, n}));
  CHECK(y == x);
}
