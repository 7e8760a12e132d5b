#include <numeric>

#include "runtime/error.hpp"
#include "test/compute/backends.hpp"

using namespace rankine;
using namespace rankine::testing;
using Catch::Matchers::Contains;

TEST_CASE("dtypes and shapes have NumPy's names", "[compute]") {
  for (const auto dtype : {DType::float32, DType::float64, DType::int32}) {
    CHECK(dtype_from_name(name_of(dtype)) == dtype);
  }
  CHECK_THROWS_WITH(dtype_from_name("bfloat16"),
                    Contains("bfloat16") && Contains("float32, float64 or int32"));
  CHECK_THROWS_AS(dtype_from_name(""), ConfigError);
  CHECK(Shape{}.to_string() == "()");
  CHECK(Shape{5}.to_string() == "(5,)");
  CHECK(Shape{16, 101}.to_string() == "(16, 101)");
  CHECK(Shape{}.elements() == 1);
  CHECK(Shape{3, 0, 2}.elements() == 0);
  CHECK(Shape{3, 4}.with_leading(2) == Shape{2, 3, 4});
}

TEST_CASE("a backend says what it is and what it can't be", "[compute]") {
  CHECK(make_cpu_backend(2, InstructionSet::portable)->description() == "cpu, portable, 2 threads");
  CHECK(make_cpu_backend(1, InstructionSet::portable)->description() == "cpu, portable, 1 thread");
  CHECK_THROWS_AS(make_cpu_backend(0, InstructionSet::portable), ConfigError);
  CHECK(instruction_set_from_name("avx2") == InstructionSet::avx2);
  CHECK_THROWS_AS(instruction_set_from_name("sse9"), UsageError);
}

TEST_CASE("memory is aligned and can be written to the end", "[compute]") {
  const auto backend = best_backend();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{5} << 20}) {
    const Buffer buffer = backend->allocate(bytes);
    REQUIRE(buffer.data() != nullptr);
    CHECK(buffer.bytes() == bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64 == 0);
    std::fill(buffer.data(), buffer.data() + bytes, std::byte{1});
  }
  CHECK_THROWS_AS(backend->allocate(std::size_t{1} << 62), std::bad_alloc);
}

TEST_CASE("fill and copy move every dtype", "[compute]") {
  each_backend([](Backend& backend) {
    for (const std::int64_t n : {0, 1, 50000}) {
      const auto size = static_cast<std::size_t>(n);
      std::vector<float> f(size);
      backend.fill(tensor_of(f, {n}), 0.1);
      check_equal(f, std::vector<float>(size, 0.1F));
      std::vector<double> d(size), d2(size);
      backend.fill(tensor_of(d, {n}), 0.1);
      backend.copy(tensor_of(d, {n}), tensor_of(d2, {n}));
      check_equal(d2, std::vector<double>(size, 0.1));
      std::vector<std::int32_t> i(size), i2(size);
      backend.fill(tensor_of(i, {n}), -3);
      backend.copy(tensor_of(i, {n}), tensor_of(i2, {n}));
      CHECK(i2 == std::vector<std::int32_t>(size, -3));
    }
  });
}

TEST_CASE("blocks are copied between rows of other lengths", "[compute]") {
  each_backend([](Backend& backend) {
    std::vector<float> from(5 * 7), to(5 * 4, -1.0F);
    std::iota(from.begin(), from.end(), 0.0F);
    backend.copy_block(DType::float32, 5, 3, from.data() + 2, 7, to.data() + 1, 4);
    for (int r = 0; r < 5; ++r) {
      CHECK(to[static_cast<std::size_t>(4 * r)] == -1);
      for (int c = 0; c < 3; ++c) {
        CHECK(to[static_cast<std::size_t>(4 * r + 1 + c)] == static_cast<float>(7 * r + 2 + c));
      }
    }
    backend.copy_block(DType::float32, 0, 3, nullptr, 0, nullptr, 0);
  });
}

TEST_CASE("permutations of any rank", "[compute]") {
  std::mt19937 random(41);
  each_backend([&](Backend& backend) {
    for (int round = 0; round < 40; ++round) {
      const int rank = static_cast<int>(random() % 6);
      std::vector<std::int64_t> sizes;
      std::vector<int> order;
      for (int d = 0; d < rank; ++d) {
        sizes.push_back(static_cast<std::int64_t>(random() % (round < 5 ? 3 : 8) + (round < 5 ? 0 : 1)));
        order.push_back(d);
      }
      std::shuffle(order.begin(), order.end(), random);
      const Shape shape(sizes);
      Shape permuted = shape;
      for (int d = 0; d < rank; ++d) permuted[d] = shape[order[static_cast<std::size_t>(d)]];
      std::vector<double> from(static_cast<std::size_t>(shape.elements())), to(from.size()),
          want(from.size());
      std::iota(from.begin(), from.end(), 0.0);
      for (std::int64_t e = 0; e < permuted.elements(); ++e) {
        std::int64_t rest = e, place = 0;
        for (int d = rank - 1; d >= 0; --d) {
          const int source = order[static_cast<std::size_t>(d)];
          place += rest % permuted[d] * shape.product(source + 1, rank);
          rest /= permuted[d];
        }
        want[static_cast<std::size_t>(e)] = from[static_cast<std::size_t>(place)];
      }
      backend.permute(tensor_of(from, shape), order, tensor_of(to, permuted));
      check_equal(to, want);
    }
    std::vector<std::int32_t> wide(300 * 200), turned(wide.size());
    std::iota(wide.begin(), wide.end(), 0);
    const int order[] = {1, 0};
    backend.permute(tensor_of(wide, {300, 200}), order, tensor_of(turned, {200, 300}));
    bool equal = true;
    for (int i = 0; i < 200 * 300; ++i)
      equal = equal && turned[static_cast<std::size_t>(i)] == i % 300 * 200 + i / 300;
    CHECK(equal);
  });
}

TEST_CASE("products run through the backend", "[compute]") {
  each_backend([](Backend& backend) {
    const std::vector<float> a{1, 2, 3, 4, 5, 6}, b{1, 0, 0, 1, 1, 1}, bias{10, 20};
    std::vector<float> c(4);
    Gemm product;
    product.m = product.n = 2;
    product.k = 3;
    product.a = a.data();
    product.lda = 3;
    product.b = b.data();
    product.ldb = 2;
    product.c = c.data();
    product.ldc = 2;
    product.bias = bias.data();
    product.k_leaves = Leaves::of(3, 2);
    backend.gemm(product);
    CHECK(c == std::vector<float>{14, 25, 20, 31});
    product.k_leaves = Leaves::of(4, 2);
    CHECK_THROWS_WITH(backend.gemm(product), Contains("k is 3 but its leaves cover 4"));
  });
}

TEST_CASE("attention runs through the backend", "[compute]") {
  // keras.md I.19 without the kernels, which are identities: one head, key_dim 2.
  each_backend([](Backend& backend) {
    const std::vector<float> x{1, 0, 0, 2};
    std::vector<float> y(4), statistics(4), dq(4), dk(4), dv(4);
    Attention call;
    call.samples = 1;
    call.query_length = call.key_length = 2;
    call.groups = 1;
    call.head_dim = call.value_dim = 2;
    call.q = call.k = call.v = x.data();
    call.q_row = call.k_row = call.v_row = 2;
    call.scale = 1 / std::sqrt(2.0);
    call.statistics = statistics.data();
    call.output = y.data();
    backend.attention(call);
    const float want[] = {0.66976154F, 0.66047692F, 0.05580722F, 1.8883855F};
    for (std::size_t i = 0; i < 4; ++i) CHECK(y[i] == Approx(want[i]).epsilon(1e-6));
    const std::vector<float> dy{1, 1, 1, 1};
    backend.attention_gradient(call, {dy.data(), dq.data(), dk.data(), dv.data()});
    // Each value's gradient is the sum of its weights; those of a query add up to one.
    CHECK(dv[0] == Approx(0.66976154F + 0.05580722F).epsilon(1e-6));
    CHECK(dv[0] + dv[2] == Approx(2.0F).epsilon(1e-6));
  });
}

TEST_CASE("wrong use is a logic error that says what doesn't fit", "[compute]") {
  const auto backend = best_backend();
  std::vector<float> f(6), g(4);
  std::vector<double> d(6);
  std::vector<std::int32_t> ids(6);
  const Tensor x = tensor_of(f, {2, 3}), small = tensor_of(g, {2, 2}), wide = tensor_of(d, {2, 3});
  const Tensor whole = tensor_of(ids, {6});
  CHECK_THROWS_WITH(backend->add(x, x, small), Contains("add: out (2, 2) doesn't fit a (2, 3)"));
  CHECK_THROWS_WITH(backend->add(x, wide, x), Contains("b is float64 but a is float32"));
  CHECK_THROWS_WITH(backend->scale(whole, 2, whole), Contains("not on int32"));
  CHECK_THROWS_WITH(backend->add({nullptr, DType::float32, {2, 3}}, x, x),
                    Contains("a (2, 3) has no memory"));
  CHECK_THROWS_AS(backend->copy(x, wide), std::logic_error);
  CHECK_THROWS_AS(backend->add_bias(x, small, x), std::logic_error);
  const int twice[] = {0, 0}, beyond[] = {0, 2}, fine[] = {1, 0};
  CHECK_THROWS_WITH(backend->permute(x, twice, x), Contains("each dimension once"));
  CHECK_THROWS_WITH(backend->permute(x, beyond, x), Contains("each dimension once"));
  CHECK_THROWS_WITH(backend->permute(x, fine, x), Contains("isn't the permuted shape"));
  CHECK_THROWS_WITH(backend->column_sum(x, Leaves::of(3, 1), x),
                    Contains("has 2 rows but the leaves cover 3"));
  CHECK_THROWS_AS(backend->scatter_add(x, x, Leaves::of(6, 1), x), std::logic_error);
  CHECK_THROWS_AS(backend->mean_middle(x, {}, x), std::logic_error);
  CHECK_THROWS_WITH(backend->sparse_cross_entropy(x, whole, true, 1, x, {}), Contains("must be float64"));
  CHECK_THROWS_AS(backend->layer_norm(x, small, {}, 1e-3, x, small), std::logic_error);
  CHECK_THROWS_AS(backend->dropout({1.5, 0, 0, 0, 0}, x, x), std::logic_error);
  CHECK_THROWS_AS(backend->copy_block(DType::float32, 2, 3, f.data(), 3, d.data(), 1), std::logic_error);
}
