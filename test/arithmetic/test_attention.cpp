#include <catch2/catch.hpp>

#include "runtime/arithmetic/attention.hpp"
#include "runtime/arithmetic/reference.hpp"
#include "test/arithmetic/arrays.hpp"

using namespace rankine;
using namespace rankine::testing;

namespace {

struct Sizes {
  std::int64_t samples, queries, keys, groups, heads_per_group, head_dim, value_dim;
  bool causal;
  std::int64_t window = 0;
  bool query_mask = false, key_mask = false;
  double dropout = 0.0;
  bool pair_mask = false, blind_is_zero = false;
};

/// A call with operands of its own; q, k and v of one position lie in one row, as a fused projection has
/// them.
template <class T>
struct Case {
  Attention call;
  std::vector<T> q, k, v, dy, output, statistics, dq, dk, dv;
  std::vector<std::int32_t> query_mask, key_mask, pair_mask;

  Case(std::mt19937& random, const Sizes& sizes, Family family) {
    Attention& c = call;
    c.dtype = dtype_of<T>;
    c.samples = sizes.samples;
    c.query_length = sizes.queries;
    c.key_length = sizes.keys;
    c.groups = sizes.groups;
    c.heads_per_group = sizes.heads_per_group;
    c.head_dim = sizes.head_dim;
    c.value_dim = sizes.value_dim;
    c.causal = sizes.causal;
    c.scale = 1 / std::sqrt(static_cast<double>(sizes.head_dim));
    c.window = sizes.window;
    c.blind_is_zero = sizes.blind_is_zero;
    c.dropout = {sizes.dropout, 12345678901, 5, 3, 2};
    // The first sample's keys are all hidden, so that its queries see nothing.
    for (std::int64_t i = 0; sizes.query_mask && i < c.samples * c.query_length; ++i)
      query_mask.push_back(random() % 4 != 0);
    for (std::int64_t i = 0; sizes.key_mask && i < c.samples * c.key_length; ++i)
      key_mask.push_back(i >= c.key_length && random() % 3 != 0);
    // So are the pairs of its third query.
    for (std::int64_t i = 0; sizes.pair_mask && i < c.samples * c.query_length * c.key_length; ++i)
      pair_mask.push_back(i / c.key_length != 2 && random() % 3 != 0);
    if (sizes.query_mask) c.query_mask = query_mask.data();
    if (sizes.key_mask) c.key_mask = key_mask.data();
    if (sizes.pair_mask) c.pair_mask = pair_mask.data();
    const auto gap = [&] { return static_cast<std::int64_t>(random() % 3); };
    c.q_head = c.head_dim + gap();
    c.q_group = c.heads_per_group * c.q_head + gap();
    c.q_row = c.groups * c.q_group + gap();
    c.k_group = c.head_dim + gap();
    c.k_row = c.groups * c.k_group + gap();
    c.v_group = c.value_dim + gap();
    c.v_row = c.groups * c.v_group + gap();
    const std::int64_t heads = c.groups * c.heads_per_group;
    q = random_array<T>(random, c.samples * c.query_length * c.q_row, family);
    k = random_array<T>(random, c.samples * c.key_length * c.k_row, family);
    v = random_array<T>(random, c.samples * c.key_length * c.v_row, family);
    dy = random_array<T>(random, c.samples * c.query_length * heads * c.value_dim, family);
    output.assign(dy.size(), T(7));
    statistics.assign(static_cast<std::size_t>(c.samples * heads * c.query_length * 2), T(7));
    clear_gradients();
    c.q = q.data();
    c.k = k.data();
    c.v = v.data();
    c.output = output.data();
    c.statistics = statistics.data();
  }
  void clear_gradients() {
    dq.assign(q.size(), T(7));  // gaps between heads keep what they had
    dk.assign(k.size(), T(7));
    dv.assign(v.size(), T(7));
  }
  AttentionGradient gradient() { return {dy.data(), dq.data(), dk.data(), dv.data()}; }
};

template <class T>
void check(const Sizes& sizes, Family family, ThreadPool& pool, AttentionWorkspace& workspace,
           std::mt19937& random) {
  Case<T> expected(random, sizes, family);
  Case<T> got = expected;
  reference::attention<T>(expected.call);
  reference::attention_gradient<T>(expected.call, expected.gradient());
  got.call.q = got.q.data();
  got.call.k = got.k.data();
  got.call.v = got.v.data();
  got.call.output = got.output.data();
  got.call.statistics = got.statistics.data();
  if (sizes.query_mask) got.call.query_mask = got.query_mask.data();
  if (sizes.key_mask) got.call.key_mask = got.key_mask.data();
  if (sizes.pair_mask) got.call.pair_mask = got.pair_mask.data();
  for (const InstructionSet set : instruction_sets()) {
    INFO(name_of(set) << " samples " << sizes.samples << " queries " << sizes.queries << " keys "
                      << sizes.keys << " groups " << sizes.groups << " x " << sizes.heads_per_group
                      << " dims " << sizes.head_dim << ' ' << sizes.value_dim << " causal " << sizes.causal
                      << " threads " << pool.threads());
    got.clear_gradients();
    attention(kernels<T>(set), got.call, pool, workspace);
    REQUIRE(first_difference(got.statistics, expected.statistics) == -1);
    REQUIRE(first_difference(got.output, expected.output) == -1);
    attention_gradient(kernels<T>(set), got.call, got.gradient(), pool, workspace);
    REQUIRE(first_difference(got.dv, expected.dv) == -1);
    REQUIRE(first_difference(got.dq, expected.dq) == -1);
    REQUIRE(first_difference(got.dk, expected.dk) == -1);
  }
}

/// sum of output * dy, in double.
double loss(const Case<double>& c, ThreadPool& pool, AttentionWorkspace& workspace) {
  attention(kernels<double>(best_instruction_set()), c.call, pool, workspace);
  double total = 0;
  for (std::size_t i = 0; i < c.output.size(); ++i) total += c.output[i] * c.dy[i];
  return total;
}

}  // namespace

TEMPLATE_TEST_CASE("attention equals its definition", "[attention]", float, double) {
  std::mt19937 random(1);
  ThreadPool pools[] = {ThreadPool(1), ThreadPool(2), ThreadPool(3)};
  AttentionWorkspace workspace(3);
  for (int i = 0; i < 60; ++i) {
    const auto size = [&](std::int64_t most) {
      return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(most));
    };
    const bool causal = random() % 2 == 0;
    const std::int64_t queries = size(i % 5 == 0 ? 200 : 40);
    const std::int64_t keys = random() % 3 == 0 ? size(90) : queries;
    check<TestType>({size(2), queries, keys, size(2), size(3), size(20), size(20), causal}, k_families[i % 4],
                    pools[random() % 3], workspace, random);
  }
}

TEMPLATE_TEST_CASE("attention with windows, masks and dropout equals its definition", "[attention]", float,
                   double) {
  std::mt19937 random(7);
  ThreadPool pool(2);
  AttentionWorkspace workspace(2);
  for (const bool causal : {false, true}) {
    for (const Sizes& sizes :
         {Sizes{2, 70, 70, 1, 2, 5, 6, causal, 3}, Sizes{2, 20, 33, 2, 1, 5, 6, causal, 40},
          Sizes{2, 33, 9, 1, 1, 5, 6, causal, 2, true, true},
          Sizes{3, 70, 70, 1, 2, 5, 6, causal, 0, true, false},
          Sizes{3, 70, 70, 2, 1, 5, 6, causal, 0, false, true},
          Sizes{2, 70, 71, 2, 2, 5, 6, causal, 0, false, false, 0.3},
          Sizes{2, 20, 33, 1, 2, 5, 6, causal, 9, true, true, 0.5},
          Sizes{2, 20, 33, 1, 2, 5, 6, causal, 9, true, true, 0.5, true, true},
          Sizes{3, 70, 70, 1, 2, 5, 6, causal, 0, false, true, 0.0, false, true},
          Sizes{2, 9, 7, 2, 1, 5, 6, causal, 0, false, false, 0.0, true}})
      check<TestType>(sizes, Family::normal, pool, workspace, random);
  }
}

TEST_CASE("attention over many keys equals its definition", "[attention]") {
  std::mt19937 random(2);
  ThreadPool pool(2);
  AttentionWorkspace workspace(2);
  check<float>({1, 3, 2700, 1, 2, 5, 6, false}, Family::normal, pool, workspace, random);
  check<float>({1, 70, 0, 1, 1, 5, 6, false}, Family::normal, pool, workspace, random);
  check<float>({1, 0, 70, 1, 3, 5, 6, true}, Family::normal, pool, workspace, random);
  check<float>({1, 2, 3, 1, 1, 1100, 1300, true}, Family::normal, pool, workspace, random);
  check<double>({1, 3, 1300, 1, 1, 5, 6, false}, Family::normal, pool, workspace, random);
}

TEST_CASE("threads share attention's samples and groups", "[attention][threads]") {
  std::mt19937 random(4);
  ThreadPool pool(2);
  AttentionWorkspace workspace(2);
  check<float>({2, 9, 20, 3, 2, 5, 6, true}, Family::normal, pool, workspace, random);
}

TEST_CASE("attention's gradients are those of its values", "[attention]") {
  std::mt19937 random(3);
  ThreadPool pool(1);
  AttentionWorkspace workspace(1);
  for (const Sizes& sizes : {Sizes{2, 5, 5, 2, 1, 4, 4, true}, Sizes{1, 3, 6, 1, 3, 3, 5, false},
                             Sizes{1, 70, 70, 1, 2, 3, 2, true}, Sizes{1, 9, 9, 1, 2, 3, 2, true, 3},
                             Sizes{2, 6, 5, 1, 2, 3, 2, false, 0, true, true, 0.4},
                             Sizes{2, 6, 5, 1, 2, 3, 2, false, 0, true, true, 0.4, true, true}}) {
    Case<double> c(random, sizes, Family::normal);
    (void)loss(c, pool, workspace);
    attention_gradient(kernels<double>(best_instruction_set()), c.call, c.gradient(), pool, workspace);
    const auto numeric = [&](std::vector<double>& x, std::size_t i) {
      constexpr double k_step = 1e-5;
      const double old = x[i];
      x[i] = old + k_step;
      const double up = loss(c, pool, workspace);
      x[i] = old - k_step;
      const double down = loss(c, pool, workspace);
      x[i] = old;
      return (up - down) / (2 * k_step);
    };
    const auto compare = [&](std::vector<double>& x, const std::vector<double>& gradient) {
      const std::size_t stride = x.size() / 60 + 1;
      for (std::size_t i = 0; i < x.size(); i += stride) {
        if (gradient[i] == 7.0) {
          CHECK(numeric(x, i) == 0.0);  // a gap between heads, which nothing reads
        } else {
          CHECK(gradient[i] == Approx(numeric(x, i)).margin(1e-7).epsilon(1e-6));
        }
      }
    };
    compare(c.q, c.dq);
    compare(c.k, c.dk);
    compare(c.v, c.dv);
  }
}

TEST_CASE("a causal query isn't changed by later keys", "[attention]") {
  std::mt19937 random(4);
  ThreadPool pool(1);
  AttentionWorkspace workspace(1);
  const auto& table = kernels<float>(best_instruction_set());
  Case<float> c(random, {1, 150, 150, 1, 1, 8, 8, true}, Family::normal);
  attention(table, c.call, pool, workspace);
  const std::vector<float> before = c.output;
  const std::int64_t changed = 100;
  for (std::size_t i = static_cast<std::size_t>(changed * c.call.k_row); i < c.k.size(); ++i) c.k[i] = 100;
  for (std::size_t i = static_cast<std::size_t>(changed * c.call.v_row); i < c.v.size(); ++i) c.v[i] = -100;
  attention(table, c.call, pool, workspace);
  const std::int64_t at = first_difference(c.output, before);
  CHECK(at == changed * c.call.value_dim);
}
