#include <catch2/catch.hpp>

#include "runtime/arithmetic/gemm.hpp"
#include "runtime/arithmetic/reference.hpp"
#include "test/arithmetic/arrays.hpp"

using namespace rankine;
using namespace rankine::testing;

namespace {

/// A product with operands of its own.
template <class T>
struct Case {
  Gemm product;
  std::vector<T> a, b, bias, old, expected;

  Case(std::mt19937& random, std::int64_t m, std::int64_t n, const Leaves& leaves, Family family,
       std::int64_t batch, unsigned form) {
    const auto gap = [&] { return static_cast<std::int64_t>(random() % 2 == 0 ? 0 : random() % 20); };
    Gemm& g = product;
    g.dtype = dtype_of<T>;
    g.transpose_a = (form & 1U) != 0;
    g.transpose_b = (form & 2U) != 0;
    g.accumulate = (form & 4U) != 0;
    g.m = m;
    g.n = n;
    g.k = leaves.extent;
    g.k_leaves = leaves;
    g.batch = batch;
    const auto stored = [&](std::int64_t rows, std::int64_t columns, std::int64_t& ld, std::int64_t& stride) {
      ld = std::max<std::int64_t>(columns, 1) + gap();
      stride = rows * ld + gap();
      // Exactly as long as the last element needs: sanitizers see a read beyond it.
      return rows == 0 || columns == 0 || batch == 0 ? 0 : (batch - 1) * stride + (rows - 1) * ld + columns;
    };
    a = random_array<T>(random,
                        g.transpose_a ? stored(g.k, m, g.lda, g.stride_a) : stored(m, g.k, g.lda, g.stride_a),
                        family);
    b = random_array<T>(random,
                        g.transpose_b ? stored(n, g.k, g.ldb, g.stride_b) : stored(g.k, n, g.ldb, g.stride_b),
                        family);
    old = random_array<T>(random, stored(m, n, g.ldc, g.stride_c), family);
    if ((form & 8U) != 0) bias = random_array<T>(random, n, family);
    g.a = a.data();
    g.b = b.data();
    g.bias = bias.empty() ? nullptr : bias.data();
    expected = old;
    g.c = expected.data();
    reference::gemm<T>(g);
  }

  std::vector<T> run(InstructionSet set, ThreadPool& pool, GemmWorkspace& workspace) {
    std::vector<T> out = old;
    product.c = out.data();
    gemm(kernels<T>(set), product, pool, workspace);
    return out;
  }
};

template <class T>
void check(Case<T>& c, ThreadPool& pool, GemmWorkspace& workspace) {
  for (const InstructionSet set : instruction_sets()) {
    const std::int64_t at = first_difference(c.run(set, pool, workspace), c.expected);
    const Gemm& g = c.product;
    INFO(name_of(set) << " m " << g.m << " n " << g.n << " k " << g.k << " leaf " << g.k_leaves.leaf
                      << " group " << g.k_leaves.group << " transposes " << g.transpose_a << g.transpose_b
                      << " batch " << g.batch << " threads " << pool.threads() << " accumulate "
                      << g.accumulate);
    REQUIRE(at == -1);
  }
}

Leaves random_leaves(std::mt19937& random, std::int64_t k) {
  const auto up_to = [&](std::int64_t n) {
    return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(n));
  };
  const std::int64_t leaf = up_to(random() % 2 == 0 ? 12 : 256);
  if (random() % 2 == 0 || k == 0) return Leaves::of(k, leaf);
  return {k, leaf, up_to(k)};
}

template <class T>
void random_products(std::uint32_t seed, int count, std::int64_t largest, std::int64_t largest_k) {
  std::mt19937 random(seed);
  ThreadPool pools[] = {ThreadPool(1), ThreadPool(2), ThreadPool(3)};
  GemmWorkspace workspace(3);
  for (int i = 0; i < count; ++i) {
    const auto size = [&](std::int64_t most) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(most + 1));
    };
    const std::int64_t batch = random() % 4 == 0 ? size(3) : 1;
    Case<T> c(random, size(largest), size(largest), random_leaves(random, size(largest_k)), k_families[i % 4],
              batch, random());
    check(c, pools[random() % 3], workspace);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("gemm equals its definition on small shapes", "[gemm]", float, double) {
  random_products<TestType>(1, 400, 70, 70);
}

TEMPLATE_TEST_CASE("gemm equals its definition on long sums", "[gemm]", float, double) {
  random_products<TestType>(2, 30, 40, 5000);
}

TEST_CASE("gemm equals its definition on wide matrices", "[gemm]") {
  random_products<float>(3, 12, 400, 60);
}

TEST_CASE("gemm cuts columns and rows into blocks without changing bits", "[gemm][threads]") {
  std::mt19937 random(4);
  ThreadPool one(1), two(2);
  GemmWorkspace workspace(2);
  // Large enough to be shared between threads.
  for (const unsigned form : {0U, 3U, 13U}) {
    Case<float> wide(random, 5, 2700, Leaves::of(20, 8), Family::normal, 1, form);
    check(wide, one, workspace);
    check(wide, two, workspace);
    Case<float> tall(random, 4500, 3, Leaves::of(20, 8), Family::normal, 1, form);
    check(tall, one, workspace);
    check(tall, two, workspace);
    Case<float> many_rows(random, 280, 5, Leaves::of(4100, 64), Family::normal, 1, form);
    check(many_rows, one, workspace);
    Case<float> many_columns(random, 5, 150, Leaves::of(4100, 64), Family::normal, 1, form | 4U);
    check(many_columns, two, workspace);
  }
}

TEST_CASE("a product repeated allocates nothing", "[gemm]") {
  std::mt19937 random(5);
  ThreadPool pool(1);
  GemmWorkspace workspace(1);
  Case<float> c(random, 60, 90, Leaves::of(3000, 8), Family::normal, 1, 4);
  (void)c.run(best_instruction_set(), pool, workspace);
  const auto& area = workspace.area(0);
  const std::size_t before = area.a.bytes() + area.b.bytes() + area.slots.bytes();
  const float* slots = workspace.area(0).slots.get<float>(1);
  (void)c.run(best_instruction_set(), pool, workspace);
  CHECK(area.a.bytes() + area.b.bytes() + area.slots.bytes() == before);
  CHECK(workspace.area(0).slots.get<float>(1) == slots);
}

TEST_CASE("chunks of a sum follow the leaves", "[gemm]") {
  // 1024 terms a chunk: the whole subtree of sixteen leaves of 64, then what is left of 2500.
  const ChunkPlan plan(Leaves::of(2500, 64), 1024);
  REQUIRE(plan.chunks().size() == 3);
  CHECK(plan.chunks()[0].pieces == 16);
  CHECK(plan.chunks()[1].folds == 1);
  CHECK(plan.chunks()[2].terms == Range{2048, 2500});
  CHECK(plan.chunks()[2].folds == 1);
  CHECK(plan.slots() == 1);
  CHECK(ChunkPlan(Leaves::of(4096, 64), 1024).slots() == 2);
  // A leaf longer than a chunk goes on in the next one.
  const ChunkPlan one_leaf(Leaves::of(2500, 2500), 1024);
  REQUIRE(one_leaf.chunks().size() == 3);
  CHECK_FALSE(one_leaf.chunks()[0].continues);
  CHECK(one_leaf.chunks()[2].continues);
  CHECK(one_leaf.slots() == 1);
  // No terms: one chunk whose value is +0.
  CHECK(ChunkPlan(Leaves::of(0, 64), 1024).chunks().size() == 1);
}

TEST_CASE("instruction sets have names", "[gemm]") {
  for (const auto set : {InstructionSet::portable, InstructionSet::avx2, InstructionSet::avx512}) {
    CHECK(instruction_set_from_name(name_of(set)) == set);
  }
  CHECK_THROWS_WITH(instruction_set_from_name("sse"), Catch::Contains("use portable, avx2 or avx512"));
  CHECK(processor_runs(best_instruction_set()));
}
