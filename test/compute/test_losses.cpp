#include "runtime/arithmetic/row_reference.hpp"
#include "runtime/error.hpp"
#include "test/compute/backends.hpp"

using namespace rankine;
using namespace rankine::testing;

namespace {

struct Size {
  std::int64_t rows, columns;
};
constexpr Size k_sizes[] = {{0, 4}, {1, 1}, {3, 10}, {5, 33}, {40, 65}, {3, 300}, {2, 2100}};

/// Probabilities that need not add up to one, some at and beyond the ends.
template <class T>
std::vector<T> probabilities(std::mt19937& random, std::int64_t n) {
  std::vector<T> p;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto kind = random() % 16;
    p.push_back(kind == 0 ? T(0) : kind == 1 ? T(1) : std::uniform_real_distribution<T>(0, 1)(random));
  }
  return p;
}

/// Losses with targets, by name.
enum class Kind { categorical, binary, squared, absolute, huber };
constexpr Kind k_kinds[] = {Kind::categorical, Kind::binary, Kind::squared, Kind::absolute, Kind::huber};
constexpr double k_delta = 0.7;

template <class T>
reference::LossRow<T> reference_row(Kind kind, const std::vector<T>& x, const std::vector<T>& t, bool logits,
                                    double smoothing, double scale) {
  switch (kind) {
    case Kind::categorical:
      return reference::categorical_cross_entropy(x, t, logits, smoothing, scale);
    case Kind::binary:
      return reference::binary_cross_entropy(x, t, logits, smoothing, scale);
    case Kind::absolute:
      return reference::mean_absolute_error(x, t, scale);
    case Kind::huber:
      return reference::huber(x, t, k_delta, scale);
    default:
      return reference::mean_squared_error(x, t, scale);
  }
}

void run(Backend& backend, Kind kind, const Tensor& x, const Tensor& t, bool logits, double smoothing,
         double scale, const Tensor& loss, const Tensor& dx) {
  switch (kind) {
    case Kind::categorical:
      return backend.categorical_cross_entropy(x, t, logits, smoothing, scale, loss, dx);
    case Kind::binary:
      return backend.binary_cross_entropy(x, t, logits, smoothing, scale, loss, dx);
    case Kind::absolute:
      return backend.mean_absolute_error(x, t, scale, loss, dx);
    case Kind::huber:
      return backend.huber(x, t, k_delta, scale, loss, dx);
    default:
      return backend.mean_squared_error(x, t, scale, loss, dx);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("losses with targets equal their scalar definition", "[losses]", float, double) {
  using T = TestType;
  std::mt19937 random(31);
  each_backend([&](Backend& backend) {
    for (const auto& [rows, columns] : k_sizes) {
      for (const auto kind : k_kinds) {
        const bool logits = random() % 2 == 0;
        const double smoothing = random() % 2 == 0 ? 0.1 : 0.0, scale = 1.0 / 7;
        const auto x = logits ? random_array<T>(random, rows * columns, k_families[random() % 4])
                              : probabilities<T>(random, rows * columns);
        const auto t = probabilities<T>(random, rows * columns);
        std::vector<double> loss;
        std::vector<T> dx;
        for (std::int64_t r = 0; r < rows; ++r) {
          const auto row =
              reference_row(kind, row_of(x, r, columns), row_of(t, r, columns), logits, smoothing, scale);
          loss.push_back(row.loss);
          append(dx, row.dx);
        }
        std::vector<double> got_loss(loss.size());
        std::vector<T> got(x.size());
        const Shape shape{rows, columns};
        const Tensor losses = tensor_of(got_loss, {rows});
        run(backend, kind, tensor_of(x, shape), tensor_of(t, shape), logits, smoothing, scale, losses,
            tensor_of(got, shape));
        check_equal(got_loss, loss);
        check_equal(got, dx);
        std::fill(got_loss.begin(), got_loss.end(), -1.0);
        run(backend, kind, tensor_of(x, shape), tensor_of(t, shape), logits, smoothing, scale, losses, {});
        check_equal(got_loss, loss);
      }
    }
  });
}

TEMPLATE_TEST_CASE("sparse cross-entropy equals its scalar definition", "[losses]", float, double) {
  using T = TestType;
  std::mt19937 random(32);
  each_backend([&](Backend& backend) {
    for (const auto& [rows, columns] : k_sizes) {
      for (const bool logits : {false, true}) {
        const auto x = logits ? random_array<T>(random, rows * columns, k_families[random() % 4])
                              : probabilities<T>(random, rows * columns);
        std::vector<std::int32_t> labels;
        std::vector<double> loss;
        std::vector<T> dx;
        for (std::int64_t r = 0; r < rows; ++r) {
          labels.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(columns)));
          const auto row =
              reference::sparse_cross_entropy(row_of(x, r, columns), labels.back(), logits, 0.25);
          loss.push_back(row.loss);
          append(dx, row.dx);
        }
        std::vector<double> got_loss(loss.size());
        std::vector<T> got(x.size());
        const Shape shape{rows, columns};
        backend.sparse_cross_entropy(tensor_of(x, shape), tensor_of(labels, {rows}), logits, 0.25,
                                     tensor_of(got_loss, {rows}), tensor_of(got, shape));
        check_equal(got_loss, loss);
        check_equal(got, dx);
        backend.sparse_cross_entropy(tensor_of(x, shape), tensor_of(labels, {rows}), logits, 0.25,
                                     tensor_of(got_loss, {rows}), {});
        check_equal(got_loss, loss);
      }
    }
  });
}

TEST_CASE("gradients of losses are the derivatives", "[losses]") {
  std::mt19937 random(33);
  constexpr double h = 1e-6;
  const auto derivative = [&](std::vector<double> x, std::size_t i, auto&& loss) {
    const double at = x[i];
    x[i] = at + h;
    const double above = loss(x);
    x[i] = at - h;
    return (above - loss(x)) / (2 * h);
  };
  for (const bool logits : {false, true}) {
    auto x = random_array<double>(random, 9), t = probabilities<double>(random, 9);
    if (!logits) {
      for (double& v : x) v = 0.05 + 0.1 * std::fabs(v);
      x[3] = 1e-12;  // beyond the clip: slope 0
    }
    for (const double smoothing : {0.0, 0.2}) {
      for (const auto kind : k_kinds) {
        const auto row = reference_row(kind, x, t, logits, smoothing, 0.5);
        for (std::size_t i = 0; i < x.size(); ++i) {
          if (!logits && i == 3 && (kind == Kind::categorical || kind == Kind::binary))
            continue;  // the step would cross the clip
          const double want = derivative(x, i, [&](const std::vector<double>& v) {
            return 0.5 * reference_row(kind, v, t, logits, smoothing, 1.0).loss;
          });
          INFO("kind " << static_cast<int>(kind) << (logits ? " logits " : " probabilities ") << i);
          CHECK(row.dx[i] == Approx(want).margin(1e-7).epsilon(1e-6));
        }
      }
    }
    const auto row = reference::sparse_cross_entropy(x, 2, logits, 0.5);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double want = derivative(x, i, [&](const std::vector<double>& v) {
        return 0.5 * reference::sparse_cross_entropy(v, 2, logits, 1.0).loss;
      });
      CHECK(row.dx[i] == Approx(want).margin(1e-7).epsilon(1e-6));
    }
  }
}

TEST_CASE("losses are Keras's", "[losses]") {
  // keras.md I.14 to I.16
  const auto backend = best_backend();
  const auto losses = [&](Kind kind, const std::vector<float>& x, const std::vector<float>& t, bool logits,
                          double smoothing, std::int64_t columns) {
    const auto rows = static_cast<std::int64_t>(x.size()) / columns;
    std::vector<double> loss(static_cast<std::size_t>(rows));
    run(*backend, kind, tensor_of(x, {rows, columns}), tensor_of(t, {rows, columns}), logits, smoothing, 1.0,
        tensor_of(loss, {rows}), {});
    return loss;
  };
  CHECK(losses(Kind::squared, {1.5F, 1, 2, 6}, {1, 2, 3, 4}, false, 0, 2) == std::vector<double>{.625, 2.5});
  const auto first_two = [](const std::vector<double>& v) { return (v[0] + v[1]) / 2; };
  CHECK(first_two(losses(Kind::absolute, {1.5F, 1, 2, 6}, {1, 2, 3, 4}, false, 0, 2)) == 1.125);
  const auto smooth = losses(Kind::categorical, {2, 1, .1F, .5F, 2.5F, -1}, {1, 0, 0, 0, 0, 1}, true, .1, 3);
  CHECK(smooth[0] == Approx(0.5136966).epsilon(1e-6));
  CHECK(smooth[1] == Approx(3.4865115).epsilon(1e-6));
  CHECK(losses(Kind::categorical, {.7F, .2F, .2F}, {1, 0, 0}, false, 0, 3)[0] ==
        Approx(0.45198515).epsilon(1e-6));
  const auto mean = [](const std::vector<double>& v) { return (v[0] + v[1]) / 2; };
  CHECK(mean(losses(Kind::binary, {2, -1, .5F, .3F}, {1, 0, 0, 1}, true, 0, 2)) ==
        Approx(0.49215549).epsilon(1e-6));
  CHECK(mean(losses(Kind::binary, {2, -1, .5F, .3F}, {1, 0, 0, 1}, true, .2, 2)) ==
        Approx(0.56215549).epsilon(1e-6));
  CHECK(losses(Kind::binary, {0}, {1}, false, 0, 1)[0] == Approx(16.118095).epsilon(1e-6));
  CHECK(losses(Kind::binary, {1}, {0}, false, 0, 1)[0] == Approx(15.942385).epsilon(1e-6));

  const std::vector<float> x{2, 1, .1F, .5F, 2.5F, -1};
  const std::vector<std::int32_t> labels{0, 2}, first{0};
  std::vector<double> loss(2);
  backend->sparse_cross_entropy(tensor_of(x, {2, 3}), tensor_of(labels, {2}), true, 1.0, tensor_of(loss, {2}),
                                {});
  CHECK(loss[0] == Approx(0.41702995).epsilon(1e-6));
  CHECK(loss[1] == Approx(3.6531782).epsilon(1e-6));
  const std::vector<float> p{.7F, .2F, .2F};
  loss.resize(1);
  backend->sparse_cross_entropy(tensor_of(p, {1, 3}), tensor_of(first, {1}), false, 1.0, tensor_of(loss, {1}),
                                {});
  CHECK(loss[0] == Approx(0.45198515).epsilon(1e-6));
}

TEST_CASE("labels outside the classes are named", "[losses]") {
  const auto backend = best_backend();
  const std::vector<float> x(6);
  std::vector<double> loss(2);
  for (const std::int32_t bad : {3, -1}) {
    const std::vector<std::int32_t> labels{0, bad};
    CHECK_THROWS_AS(backend->sparse_cross_entropy(tensor_of(x, {2, 3}), tensor_of(labels, {2}), true, 1.0,
                                                  tensor_of(loss, {2}), {}),
                    DataError);
  }
  const std::vector<std::int32_t> labels{2, 3};
  CHECK_THROWS_WITH(backend->sparse_cross_entropy(tensor_of(x, {2, 3}), tensor_of(labels, {2}), true, 1.0,
                                                  tensor_of(loss, {2}), {}),
                    Catch::Matchers::Contains("label 3 (element 1") && Catch::Matchers::Contains("[0, 3)"));
}

TEST_CASE("hits and values that aren't finite are counted", "[losses]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  each_backend([&](Backend& backend) {
    const std::vector<float> x{1, 3, 3, 2, -1, 0, nan, 5, nan, -5, -4, -6};
    const std::vector<std::int32_t> labels{1, 1, 0, 1};
    std::vector<double> hits(4);
    const Tensor counts = tensor_of(hits, {4});
    backend.sparse_hits(tensor_of(x, {4, 3}), tensor_of(labels, {4}), counts);
    CHECK(hits == std::vector<double>{1, 0, 1, 1});
    const std::vector<float> targets{0, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0};
    backend.categorical_hits(tensor_of(x, {4, 3}), tensor_of(targets, {4, 3}), counts);
    CHECK(hits == std::vector<double>{1, 1, 0, 0});
    const std::vector<float> p{.5F, .51F, .2F, 1, 0, 0, 1, 1}, y{0, 1, 1, 1, 1, 1, 0, 1};
    backend.binary_hits(tensor_of(p, {4, 2}), tensor_of(y, {4, 2}), 0.5, counts);
    CHECK(hits == std::vector<double>{2, 1, 0, 1});
    backend.sparse_top_k_hits(tensor_of(x, {4, 3}), tensor_of(labels, {4}), 1, counts);
    CHECK(hits == std::vector<double>{1, 0, 0, 1});  // a NaN is smaller than all
    const std::vector<std::int32_t> odd{-1, 2, 2, 3};
    backend.sparse_top_k_hits(tensor_of(x, {4, 3}), tensor_of(odd, {4}), 2, counts);
    CHECK(hits == std::vector<double>{1, 1, 1, 0});
    backend.categorical_top_k_hits(tensor_of(x, {4, 3}), tensor_of(targets, {4, 3}), 2, counts);
    CHECK(hits == std::vector<double>{1, 1, 1, 1});
    std::vector<double> predicted(4), wanted(4);
    backend.count_positives(tensor_of(p, {4, 2}), tensor_of(y, {4, 2}), 0.5, counts,
                            tensor_of(predicted, {4}), tensor_of(wanted, {4}));
    CHECK(hits == std::vector<double>{1, 1, 0, 1});
    CHECK(predicted == std::vector<double>{1, 1, 0, 2});
    CHECK(wanted == std::vector<double>{1, 2, 2, 1});
    std::vector<float> large(100000, 1.0F);
    CHECK(backend.find_non_finite(tensor_of(large, {100000})) == -1);
    CHECK(backend.find_non_finite({nullptr, DType::float32, {0}}) == -1);
    large[99999] = nan;
    CHECK(backend.find_non_finite(tensor_of(large, {100000})) == 99999);
    large[33333] = -std::numeric_limits<float>::infinity();
    CHECK(backend.find_non_finite(tensor_of(large, {100000})) == 33333);
    // Ties go to the lowest index wherever they stand, beyond one vector as well.
    std::vector<float> ties(40, 0.0F);
    ties[17] = ties[39] = 2;
    const std::vector<std::int32_t> place{17};
    hits.resize(1);
    backend.sparse_hits(tensor_of(ties, {1, 40}), tensor_of(place, {1}), tensor_of(hits, {1}));
    CHECK(hits[0] == 1);
  });
}
