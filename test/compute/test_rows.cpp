#include "runtime/arithmetic/row_reference.hpp"
#include "runtime/error.hpp"
#include "test/compute/backends.hpp"

using namespace rankine;
using namespace rankine::testing;

namespace {

struct Size {
  std::int64_t rows, columns;
};
/// The last one is large enough to be shared between threads.
constexpr Size k_sizes[] = {{0, 4}, {1, 1}, {3, 15}, {2, 16}, {5, 33}, {40, 100}, {3, 300}, {17, 1025}};

template <class T>
double dot(const std::vector<T>& a, const std::vector<T>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// The derivative of sum(weights * f(x)) by x[i], from both sides.
template <class F>
double slope_of(std::vector<double> x, std::size_t i, const std::vector<double>& weights, F&& f) {
  constexpr double h = 1e-6;
  const double at = x[i];
  x[i] = at + h;
  const double above = dot(f(x), weights);
  x[i] = at - h;
  return (above - dot(f(x), weights)) / (2 * h);
}

}  // namespace

TEMPLATE_TEST_CASE("softmax equals its scalar definition", "[rows]", float, double) {
  using T = TestType;
  std::mt19937 random(21);
  each_backend([&](Backend& backend) {
    for (const auto& [rows, columns] : k_sizes) {
      for (const bool log : {false, true}) {
        const auto family = k_families[random() % 4];
        const auto x = random_array<T>(random, rows * columns, family);
        const auto dy = random_array<T>(random, rows * columns, family);
        std::vector<T> y, dx, got(x.size());
        for (std::int64_t r = 0; r < rows; ++r) append(y, reference::softmax(row_of(x, r, columns), log));
        for (std::int64_t r = 0; r < rows; ++r) {
          append(dx, reference::softmax_gradient(row_of(y, r, columns), log, row_of(dy, r, columns)));
        }
        const Shape shape{rows, columns};
        backend.softmax(tensor_of(x, shape), log, tensor_of(got, shape));
        check_equal(got, y);
        backend.softmax_gradient(tensor_of(y, shape), log, tensor_of(dy, shape), tensor_of(got, shape));
        check_equal(got, dx);
      }
    }
  });
}

TEMPLATE_TEST_CASE("layer norm equals its scalar definition", "[rows][threads]", float, double) {
  using T = TestType;
  std::mt19937 random(22);
  each_backend([&](Backend& backend) {
    for (const auto& [rows, columns] : k_sizes) {
      for (int form = 0; form < 4; ++form) {
        const auto family = k_families[random() % 4];
        const auto x = random_array<T>(random, rows * columns, family);
        const auto dy = random_array<T>(random, rows * columns, family);
        const auto gamma = random_array<T>(random, form & 1 ? columns : 0);
        const auto beta = random_array<T>(random, form & 2 ? columns : 0);
        std::vector<T> y, dx, normalized, statistics;
        for (std::int64_t r = 0; r < rows; ++r) {
          const auto row = reference::layer_norm(row_of(x, r, columns), gamma, beta, T(1e-3));
          append(y, row.y);
          append(statistics, {row.mean, row.rstd});
          const auto gradient = reference::layer_norm_gradient(row_of(x, r, columns), gamma, row.mean,
                                                               row.rstd, row_of(dy, r, columns));
          append(dx, gradient.dx);
          append(normalized, gradient.normalized_dy);
        }
        const Shape shape{rows, columns};
        const Tensor g = gamma.empty() ? Tensor{} : tensor_of(gamma, {columns});
        const Tensor b = beta.empty() ? Tensor{} : tensor_of(beta, {columns});
        std::vector<T> got(x.size()), got_normalized(x.size()), got_statistics(statistics.size());
        const Tensor s = tensor_of(got_statistics, {rows, 2});
        backend.layer_norm(tensor_of(x, shape), g, b, 1e-3, tensor_of(got, shape), s);
        check_equal(got, y);
        check_equal(got_statistics, statistics);
        backend.layer_norm_gradient(tensor_of(x, shape), g, s, tensor_of(dy, shape), tensor_of(got, shape),
                                    gamma.empty() ? Tensor{} : tensor_of(got_normalized, shape));
        check_equal(got, dx);
        if (!gamma.empty()) {
          check_equal(got_normalized, normalized);
          std::fill(got_normalized.begin(), got_normalized.end(), T(0));
          backend.layer_norm_gradient(tensor_of(x, shape), g, s, tensor_of(dy, shape), {},
                                      tensor_of(got_normalized, shape));
          check_equal(got_normalized, normalized);
        }
      }
    }
  });
}

TEMPLATE_TEST_CASE("rms norm equals its scalar definition", "[rows]", float, double) {
  using T = TestType;
  std::mt19937 random(23);
  each_backend([&](Backend& backend) {
    for (const auto& [rows, columns] : k_sizes) {
      for (const bool centre : {false, true}) {
        const auto family = k_families[random() % 4];
        const auto x = random_array<T>(random, rows * columns, family);
        const auto dy = random_array<T>(random, rows * columns, family);
        const auto gamma = random_array<T>(random, random() % 2 == 0 ? columns : 0);
        std::vector<T> y, dx, normalized, statistics;
        for (std::int64_t r = 0; r < rows; ++r) {
          const auto row = reference::rms_norm(row_of(x, r, columns), gamma, T(1e-6), centre);
          append(y, row.y);
          statistics.push_back(row.rstd);
          const auto gradient = reference::rms_norm_gradient(row_of(x, r, columns), gamma, row.rstd, centre,
                                                             row_of(dy, r, columns));
          append(dx, gradient.dx);
          append(normalized, gradient.normalized_dy);
        }
        const Shape shape{rows, columns};
        const Tensor g = gamma.empty() ? Tensor{} : tensor_of(gamma, {columns});
        std::vector<T> got(x.size()), got_normalized(x.size()), got_statistics(statistics.size());
        const Tensor s = tensor_of(got_statistics, {rows});
        backend.rms_norm(tensor_of(x, shape), g, 1e-6, centre, tensor_of(got, shape), s);
        check_equal(got, y);
        check_equal(got_statistics, statistics);
        backend.rms_norm_gradient(tensor_of(x, shape), g, s, centre, tensor_of(dy, shape),
                                  tensor_of(got, shape), tensor_of(got_normalized, shape));
        check_equal(got, dx);
        check_equal(got_normalized, normalized);
        std::fill(got_normalized.begin(), got_normalized.end(), T(0));
        backend.rms_norm_gradient(tensor_of(x, shape), g, s, centre, tensor_of(dy, shape), {},
                                  tensor_of(got_normalized, shape));
        check_equal(got_normalized, normalized);
      }
    }
  });
}

TEST_CASE("gradients along rows are the derivatives", "[rows]") {
  std::mt19937 random(24);
  const auto x = random_array<double>(random, 20), dy = random_array<double>(random, 20),
             gamma = random_array<double>(random, 20);
  const auto close = [](double a, double b) { return a == Approx(b).margin(1e-7); };
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (const bool log : {false, true}) {
      const auto f = [&](const std::vector<double>& v) { return reference::softmax(v, log); };
      CHECK(close(reference::softmax_gradient(f(x), log, dy)[i], slope_of(x, i, dy, f)));
    }
    const auto layer = [&](const std::vector<double>& v) {
      return reference::layer_norm(v, gamma, {}, 1e-3).y;
    };
    const auto row = reference::layer_norm(x, gamma, {}, 1e-3);
    CHECK(close(reference::layer_norm_gradient(x, gamma, row.mean, row.rstd, dy).dx[i],
                slope_of(x, i, dy, layer)));
    for (const bool centre : {false, true}) {
      const auto rms = [&](const std::vector<double>& v) {
        return reference::rms_norm(v, gamma, 1e-3, centre).y;
      };
      const double rstd = reference::rms_norm(x, gamma, 1e-3, centre).rstd;
      CHECK(close(reference::rms_norm_gradient(x, gamma, rstd, centre, dy).dx[i], slope_of(x, i, dy, rms)));
    }
  }
}

TEST_CASE("normalisations are Keras's", "[rows]") {
  // keras.md I.17
  const std::vector<float> x{1, 2, 4, -1};
  std::vector<float> y(4), statistics(2);
  const auto backend = best_backend();
  const auto close = [&](const std::vector<float>& want) {
    for (std::size_t i = 0; i < want.size(); ++i) CHECK(y[i] == Approx(want[i]).epsilon(2e-6));
  };
  backend->layer_norm(tensor_of(x, {1, 4}), {}, {}, 1e-3, tensor_of(y, {1, 4}),
                      tensor_of(statistics, {1, 2}));
  close({-.27730745F, .27730739F, 1.3865371F, -1.3865371F});
  backend->layer_norm(tensor_of(x, {1, 4}), {}, {}, 1e-5, tensor_of(y, {1, 4}),
                      tensor_of(statistics, {1, 2}));
  CHECK(y[2] == Approx(1.3867484F).epsilon(1e-6));
  statistics.resize(1);
  backend->rms_norm(tensor_of(x, {1, 4}), {}, 1e-3, true, tensor_of(y, {1, 4}), tensor_of(statistics, {1}));
  close({.5546148F, 1.1092297F, 2.2184594F, -.5546148F});
  backend->rms_norm(tensor_of(x, {1, 4}), {}, 1e-6, false, tensor_of(y, {1, 4}), tensor_of(statistics, {1}));
  close({.42640138F, .85280275F, 1.7056055F, -.42640138F});
}

TEST_CASE("gather copies rows and refuses ids that aren't there", "[rows]") {
  std::mt19937 random(25);
  each_backend([&](Backend& backend) {
    const auto table = random_array<float>(random, 7 * 5);
    std::vector<std::int32_t> ids{3, 0, 6, 3};
    std::vector<float> out(20), want;
    for (const auto id : ids) append(want, row_of(table, id, 5));
    backend.gather(tensor_of(table, {7, 5}), tensor_of(ids, {2, 2}), tensor_of(out, {2, 2, 5}));
    check_equal(out, want);
    ids[2] = 7;
    CHECK_THROWS_WITH(
        backend.gather(tensor_of(table, {7, 5}), tensor_of(ids, {2, 2}), tensor_of(out, {2, 2, 5})),
        Catch::Matchers::Contains("id 7") && Catch::Matchers::Contains("element 2") &&
            Catch::Matchers::Contains("[0, 7)"));
    ids[2] = -1;
    CHECK_THROWS_AS(
        backend.gather(tensor_of(table, {7, 5}), tensor_of(ids, {2, 2}), tensor_of(out, {2, 2, 5})),
        DataError);
  });
}
