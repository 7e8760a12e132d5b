#include "runtime/arithmetic/column_reference.hpp"
#include "runtime/arithmetic/reference.hpp"
#include "test/compute/backends.hpp"

using namespace rankine;
using namespace rankine::testing;

namespace {

const std::vector<Leaves>& row_cuts() {
  static const std::vector<Leaves> cuts{{0, 4, 4},   {1, 1, 1},    {5, 1, 1},   {37, 4, 8},
                                        {100, 7, 7}, {64, 16, 48}, {130, 3, 9}, {300, 256, 256}};
  return cuts;
}

}  // namespace

TEMPLATE_TEST_CASE("column sums equal their scalar definition", "[columns][threads]", float, double) {
  using T = TestType;
  std::mt19937 random(11);
  each_backend([&](Backend& backend) {
    for (const auto& rows : row_cuts()) {
      for (const std::int64_t columns : {0, 1, 17, 600}) {
        if (columns == 600 && rows.extent > 60) continue;
        const auto family = k_families[random() % 4];
        const auto a = random_array<T>(random, rows.extent * columns, family);
        const auto b = random_array<T>(random, rows.extent * columns, family);
        std::vector<T> got(static_cast<std::size_t>(columns));
        const Shape shape{rows.extent, columns};
        backend.column_sum(tensor_of(a, shape), rows, tensor_of(got, {columns}));
        check_equal(got, reference::column_sum(a, {}, rows, columns));
        if (rows.extent == 0) continue;
        backend.column_dot(tensor_of(a, shape), tensor_of(b, shape), rows, tensor_of(got, {columns}));
        check_equal(got, reference::column_sum(a, b, rows, columns));
      }
    }
  });
}

TEMPLATE_TEST_CASE("scatter-add equals its scalar definition", "[columns]", float, double) {
  using T = TestType;
  std::mt19937 random(12);
  each_backend([&](Backend& backend) {
    for (const auto& rows : row_cuts()) {
      for (const std::int64_t columns : {1, 19}) {
        for (const std::int64_t vocabulary : {1, 6, 200}) {
          const auto dy = random_array<T>(random, rows.extent * columns, k_families[random() % 4]);
          std::vector<std::int32_t> ids;
          for (std::int64_t i = 0; i < rows.extent; ++i) {
            ids.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(vocabulary)));
          }
          auto got = random_array<T>(random, vocabulary * columns);
          backend.scatter_add(tensor_of(ids, {rows.extent}), tensor_of(dy, {rows.extent, columns}), rows,
                              tensor_of(got, {vocabulary, columns}));
          check_equal(got, reference::scatter_add(ids, dy, rows, vocabulary, columns));
        }
      }
    }
  });
}

TEST_CASE("scatter-adds of parts of a batch add up to that of the whole", "[columns]") {
  // What data-parallel ranks do: each its samples, then the nodes of the tree over samples.
  std::mt19937 random(13);
  constexpr std::int64_t k_samples = 8, k_length = 5, k_vocabulary = 7, k_columns = 3;
  const auto dy = random_array<float>(random, k_samples * k_length * k_columns, Family::wide);
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < k_samples * k_length; ++i) {
    ids.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(k_vocabulary)));
  }
  const auto backend = best_backend();
  const auto part = [&](std::int64_t first, std::int64_t samples) {
    std::vector<float> out(static_cast<std::size_t>(k_vocabulary * k_columns));
    backend->scatter_add(
        tensor_of(ids, {k_samples * k_length}).rows(first * k_length, (first + samples) * k_length),
        tensor_of(dy, {k_samples * k_length, k_columns}).rows(first * k_length, (first + samples) * k_length),
        {samples * k_length, k_length, k_length}, tensor_of(out, {k_vocabulary, k_columns}));
    return out;
  };
  auto halves = part(0, 4);
  const auto second = part(4, 4);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] += second[i];
  check_equal(halves, part(0, 8));
}

TEST_CASE("sums in double follow the tree", "[columns]") {
  std::mt19937 random(14);
  const auto backend = best_backend();
  for (const auto& leaves : row_cuts()) {
    const auto x = random_array<double>(random, leaves.extent, Family::wide);
    const double want = reference::leaf_sum<double>(
        leaves, [&](std::int64_t i, double acc) { return acc + x[static_cast<std::size_t>(i)]; });
    CHECK(same_bits(backend->sum(tensor_of(x, {leaves.extent}), leaves), want));
  }
  std::vector<float> singles{1e8F, 1.0F, -1e8F};
  CHECK(backend->sum(tensor_of(singles, {3}), Leaves::of(3, 4)) == 1.0);
}

TEMPLATE_TEST_CASE("sums of squares equal their scalar definition", "[columns]", float, double) {
  using T = TestType;
  std::mt19937 random(15);
  const std::vector<Shape> shapes{{},      {0},     {1},      {7},         {100},        {300},
                                  {40, 0}, {9, 33}, {64, 40}, {5, 17, 20}, {3, 4, 8, 5}, {1, 300}};
  each_backend([&](Backend& backend) {
    for (const auto& shape : shapes) {
      for (const auto family : {Family::wide, Family::denormal, Family::special}) {
        const auto x = random_array<T>(random, shape.elements(), family);
        INFO(shape.to_string());
        CHECK(same_bits(backend.sum_of_squares(tensor_of(x, shape)), reference::sum_of_squares(x, shape)));
      }
    }
  });
}

TEMPLATE_TEST_CASE("the mean over the middle dimension and its gradient", "[columns]", float, double) {
  using T = TestType;
  std::mt19937 random(16);
  each_backend([&](Backend& backend) {
    for (const auto& [samples, length, columns] :
         {std::tuple<std::int64_t, std::int64_t, std::int64_t>{0, 3, 2},
          {2, 1, 1},
          {3, 5, 17},
          {2, 300, 9}}) {
      const auto x = random_array<T>(random, samples * length * columns, Family::wide);
      std::vector<T> want;
      for (std::int64_t s = 0; s < samples; ++s) {
        const std::vector<T> sample(x.begin() + s * length * columns, x.begin() + (s + 1) * length * columns);
        for (const T sum : reference::column_sum(sample, {}, Leaves::of(length, k_row_leaf), columns)) {
          want.push_back(sum / static_cast<T>(length));
        }
      }
      std::vector<T> got(want.size()), dx(x.size()), want_dx(x.size());
      backend.mean_middle(tensor_of(x, {samples, length, columns}), {}, tensor_of(got, {samples, columns}));
      check_equal(got, want);
      for (std::size_t i = 0; i < dx.size(); ++i) {
        const std::int64_t place = static_cast<std::int64_t>(i);
        const std::int64_t s = place / (length * columns), c = place % columns;
        want_dx[i] = want[static_cast<std::size_t>(s * columns + c)] / static_cast<T>(length);
      }
      backend.mean_middle_gradient(tensor_of(want, {samples, columns}), {},
                                   tensor_of(dx, {samples, length, columns}));
      check_equal(dx, want_dx);
    }
  });
}

TEMPLATE_TEST_CASE("the mean over the steps that a mask leaves, and its gradient", "[columns][masks]", float,
                   double) {
  using T = TestType;
  constexpr T k_nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> x = {1, 2, 3, 4, 50, 60, 7, 8, 9, 10, 11, 12}, dy = {6, 8, 1, 2};
  const std::vector<std::int32_t> mask = {1, 1, 0, 0, 0, 0};
  each_backend([&](Backend& backend) {
    std::vector<T> got(4), dx(12);
    backend.mean_middle(tensor_of(x, {2, 3, 2}), tensor_of(mask, {2, 3}), tensor_of(got, {2, 2}));
    check_equal(got, std::vector<T>{2, 3, k_nan, k_nan});
    backend.mean_middle_gradient(tensor_of(dy, {2, 2}), tensor_of(mask, {2, 3}), tensor_of(dx, {2, 3, 2}));
    check_equal(dx, std::vector<T>{3, 4, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0});
  });
}

TEMPLATE_TEST_CASE("a long masked mean is the sum of the steps that count, leaf by leaf", "[columns][masks]",
                   float, double) {
  using T = TestType;
  constexpr std::int64_t k_length = 700, k_columns = 5;
  std::mt19937 random(18);
  const auto x = random_array<T>(random, k_length * k_columns, Family::wide);
  std::vector<std::int32_t> mask;
  std::vector<T> kept = x;
  std::int64_t count = 0;
  for (std::int64_t t = 0; t < k_length; ++t) {
    mask.push_back(random() % 3 == 0 ? 1 : 0);
    count += mask.back();
    if (mask.back() == 0) std::fill_n(kept.begin() + t * k_columns, k_columns, T(0));
  }
  // Terms of 0 change no sum that isn't 0 itself.
  std::vector<T> want = reference::column_sum(kept, {}, Leaves::of(k_length, k_row_leaf), k_columns);
  for (T& mean : want) mean /= static_cast<T>(count);
  each_backend([&](Backend& backend) {
    std::vector<T> got(static_cast<std::size_t>(k_columns));
    backend.mean_middle(tensor_of(x, {1, k_length, k_columns}), tensor_of(mask, {1, k_length}),
                        tensor_of(got, {1, k_columns}));
    check_equal(got, want);
  });
}

TEST_CASE("masks are made, joined, counted and applied", "[masks]") {
  const std::vector<std::int32_t> ids = {3, 0, 2, 0, -1};
  each_backend([&](Backend& backend) {
    std::vector<std::int32_t> mask(5), other = {0, 1, 0, 0, 1};
    backend.not_equal(tensor_of(ids, {5}), 0, tensor_of(mask, {5}));
    CHECK(mask == std::vector<std::int32_t>{1, 0, 1, 0, 1});
    CHECK(backend.count_set(tensor_of(mask, {5})) == 3);
    backend.either(tensor_of(mask, {5}), tensor_of(other, {5}), tensor_of(other, {5}));
    CHECK(other == std::vector<std::int32_t>{1, 1, 1, 0, 1});
    std::vector<std::int32_t> kept(5);
    backend.keep(tensor_of(ids, {5}), tensor_of(mask, {5}), tensor_of(kept, {5}));
    CHECK(kept == std::vector<std::int32_t>{3, 0, 2, 0, -1});
    backend.keep(tensor_of(mask, {5}), tensor_of(std::vector<std::int32_t>{0, 1, 1, 1, 0}, {5}),
                 tensor_of(kept, {5}));
    CHECK(kept == std::vector<std::int32_t>{0, 0, 1, 0, 0});
    std::vector<double> x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    backend.clear_rows(tensor_of(x, {5, 2}), tensor_of(mask, {5}));
    CHECK(x == std::vector<double>{1, 2, 0, 0, 5, 6, 0, 0, 9, 10});
    backend.scale_rows(tensor_of(x, {5, 2}), tensor_of(std::vector<float>{2, 3, -1, 4, 0.5F}, {5}));
    CHECK(x == std::vector<double>{2, 4, 0, 0, -5, -6, 0, 0, 4.5, 5});
    std::vector<float> narrow = {0.1F, 3};
    backend.scale_rows(tensor_of(narrow, {2, 1}), tensor_of(std::vector<double>{0.3, 1.0 / 3}, {2}));
    CHECK(narrow == std::vector<float>{static_cast<float>(double{0.1F} * 0.3), 1});
  });
}
