// The scalar exp is one lane of the vector one, built as for the portable instruction set.
#define RANKINE_ISA portable

#include <cmath>
#include <limits>
#include <vector>

#include "runtime/arithmetic/attention.hpp"
#include "runtime/arithmetic/attention_mask.hpp"
#include "runtime/arithmetic/elementary.hpp"
#include "runtime/arithmetic/reference.hpp"

namespace rankine::reference {
namespace {

template <class T>
T scalar_exp(T x) {
  T lanes[portable::k_lanes];
  portable::exp(portable::Vec<T>::set1(x)).store(lanes);
  return lanes[0];
}

/// Lane i adds terms i, i + 16, ... by step(j, lane); then lanes 8, 4, 2, 1 apart are added.
template <class T, class Step>
T lane_sum(std::int64_t n, Step&& step) {
  T lanes[16] = {};
  for (std::int64_t j = 0; j < n; ++j) lanes[j % 16] = step(j, lanes[j % 16]);
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] = lanes[i] + lanes[i + half];
  }
  return lanes[0];
}

/// One query of one head: addresses of its elements and what attention.hpp defines for it.
template <class T>
struct Query {
  const Attention& c;
  std::int64_t sample, group, head, t;

  AttentionMask mask() const { return {c, sample}; }
  bool prefix() const { return c.causal && !mask().hides_keys(); }
  std::int64_t visible() const { return prefix() ? std::min(c.key_length, t + 1) : c.key_length; }
  std::int64_t end() const {
    const std::int64_t block_end = std::min(c.query_length, (t / k_query_block + 1) * k_query_block);
    return prefix() ? std::min(c.key_length, block_end) : c.key_length;
  }
  std::int64_t heads() const { return c.groups * c.heads_per_group; }
  std::int64_t q_at(std::int64_t f) const {
    return (sample * c.query_length + t) * c.q_row + group * c.q_group + head * c.q_head + f;
  }
  std::int64_t k_at(std::int64_t j, std::int64_t f) const {
    return (sample * c.key_length + j) * c.k_row + group * c.k_group + f;
  }
  std::int64_t v_at(std::int64_t j, std::int64_t f) const {
    return (sample * c.key_length + j) * c.v_row + group * c.v_group + f;
  }
  std::int64_t output_at(std::int64_t f) const {
    return ((sample * c.query_length + t) * heads() + group * c.heads_per_group + head) * c.value_dim + f;
  }
  T* statistics() const {
    const std::int64_t row = (sample * heads() + group * c.heads_per_group + head) * c.query_length + t;
    return static_cast<T*>(c.statistics) + 2 * row;
  }
  T score(std::int64_t j) const {
    if (mask().hides_keys()) {
      if (!mask().sees_something(t)) return T(0);
      if (!mask().sees(t, j)) return -std::numeric_limits<T>::infinity();
    }
    const T* q = static_cast<const T*>(c.q);
    const T* k = static_cast<const T*>(c.k);
    const T product = leaf_sum<T>(Leaves::of(c.head_dim, k_key_leaf), [&](std::int64_t f, T acc) {
      return std::fma(q[q_at(f)], k[k_at(j, f)], acc);
    });
    return product * static_cast<T>(c.scale);
  }
  T weight(std::int64_t j) const { return j < visible() ? scalar_exp(score(j) - statistics()[0]) : T(0); }
  /// x with what dropout keeps, from the definition of the random words.
  T dropped(T x, std::int64_t j) const {
    if (c.blind_is_zero && mask().hides_keys() && !mask().sees_something(t)) return T(0);
    if (c.dropout.rate == 0.0) return x;
    const DropoutRun run = attention_dropout(c, sample, group * c.heads_per_group + head, t);
    const auto words =
        philox(run.key, {static_cast<std::uint32_t>(run.first_block + j / 4), run.sample, run.step, run.use});
    const bool keeps = uniform_float(words[static_cast<std::size_t>(j % 4)]) >= c.dropout.rate;
    return keeps ? x * static_cast<T>(1.0 / (1.0 - c.dropout.rate)) : T(0);
  }
  std::vector<T> probabilities() const {
    const T share = T(1) / statistics()[1];
    std::vector<T> p(static_cast<std::size_t>(end()));
    for (std::int64_t j = 0; j < visible(); ++j) p[static_cast<std::size_t>(j)] = weight(j) * share;
    return p;
  }
  std::vector<T> score_gradients(const std::vector<T>& p, const T* dy) const {
    const T* v = static_cast<const T*>(c.v);
    std::vector<T> ds(p.size());
    for (std::int64_t j = 0; j < visible(); ++j) {
      ds[static_cast<std::size_t>(j)] =
          leaf_sum<T>(Leaves::of(c.value_dim, k_key_leaf),
                      [&](std::int64_t f, T acc) { return std::fma(dy[output_at(f)], v[v_at(j, f)], acc); });
      ds[static_cast<std::size_t>(j)] = dropped(ds[static_cast<std::size_t>(j)], j);
    }
    const T mean = lane_sum<T>(visible(), [&](std::int64_t j, T lane) {
      return std::fma(p[static_cast<std::size_t>(j)], ds[static_cast<std::size_t>(j)], lane);
    });
    for (std::int64_t j = 0; j < visible(); ++j) {
      const auto i = static_cast<std::size_t>(j);
      ds[i] = (p[i] * (ds[i] - mean)) * static_cast<T>(c.scale);
    }
    if (mask().hides_keys() && !mask().sees_something(t)) ds.assign(ds.size(), T(0));
    return ds;
  }
};

template <class F>
void each_head(const Attention& c, F&& f) {
  for (std::int64_t sample = 0; sample < c.samples; ++sample) {
    for (std::int64_t group = 0; group < c.groups; ++group) {
      for (std::int64_t head = 0; head < c.heads_per_group; ++head) f(sample, group, head);
    }
  }
}

/// dk (or dv) of one key and feature from one head: `terms` has each query's term, or none.
template <class T>
struct QuerySum {
  T total = 0, block = 0;
  bool any = false;
  void add(T left, T right) {
    block = std::fma(left, right, block);
    any = true;
  }
  void end_block() {
    if (any) total = total + block;
    block = 0;
    any = false;
  }
};

}  // namespace

template <class T>
void attention(const Attention& c) {
  each_head(c, [&](std::int64_t sample, std::int64_t group, std::int64_t head) {
    for (std::int64_t t = 0; t < c.query_length; ++t) {
      const Query<T> query{c, sample, group, head, t};
      T* statistics = query.statistics();
      statistics[0] = -std::numeric_limits<T>::infinity();
      // Which zero wins between +0 and -0 is lane by lane, as everything else.
      T lanes[16];
      std::fill_n(lanes, 16, statistics[0]);
      for (std::int64_t j = 0; j < query.visible(); ++j) {
        const T score = query.score(j);
        lanes[j % 16] = score > lanes[j % 16] ? score : lanes[j % 16];
      }
      for (int half = 8; half > 0; half /= 2) {
        for (int i = 0; i < half; ++i) lanes[i] = lanes[i] > lanes[i + half] ? lanes[i] : lanes[i + half];
      }
      statistics[0] = lanes[0];
      std::vector<T> weights(static_cast<std::size_t>(query.end()));
      for (std::int64_t j = 0; j < query.end(); ++j) weights[static_cast<std::size_t>(j)] = query.weight(j);
      statistics[1] = lane_sum<T>(query.visible(), [&](std::int64_t j, T lane) {
        return lane + weights[static_cast<std::size_t>(j)];
      });
      for (std::int64_t j = 0; j < query.end(); ++j)
        weights[static_cast<std::size_t>(j)] = query.dropped(weights[static_cast<std::size_t>(j)], j);
      for (std::int64_t f = 0; f < c.value_dim; ++f) {
        const T* v = static_cast<const T*>(c.v);
        const T sum = leaf_sum<T>(Leaves::of(query.end(), k_key_leaf), [&](std::int64_t j, T acc) {
          return std::fma(weights[static_cast<std::size_t>(j)], v[query.v_at(j, f)], acc);
        });
        static_cast<T*>(c.output)[query.output_at(f)] = sum / statistics[1];
      }
    }
  });
}

template <class T>
void attention_gradient(const Attention& c, const AttentionGradient& gradient) {
  const T* dy = static_cast<const T*>(gradient.output_gradient);
  const T* q = static_cast<const T*>(c.q);
  const T* k = static_cast<const T*>(c.k);
  const auto key_size = static_cast<std::size_t>(c.key_length * c.head_dim);
  const auto value_size = static_cast<std::size_t>(c.key_length * c.value_dim);
  const auto tree = leaf_steps(Leaves::of(c.heads_per_group, 1));
  std::vector<std::vector<T>> waiting;
  each_head(c, [&](std::int64_t sample, std::int64_t group, std::int64_t head) {
    std::vector<QuerySum<T>> sums(key_size + value_size);
    for (std::int64_t t = 0; t < c.query_length; ++t) {
      const Query<T> query{c, sample, group, head, t};
      const std::vector<T> p = query.probabilities();
      const std::vector<T> ds = query.score_gradients(p, dy);
      for (std::int64_t f = 0; f < c.head_dim; ++f) {
        static_cast<T*>(gradient.dq)[query.q_at(f)] =
            leaf_sum<T>(Leaves::of(query.end(), k_key_leaf), [&](std::int64_t j, T acc) {
              return std::fma(ds[static_cast<std::size_t>(j)], k[query.k_at(j, f)], acc);
            });
      }
      for (std::int64_t j = 0; j < query.end(); ++j) {
        const auto i = static_cast<std::size_t>(j);
        for (std::int64_t f = 0; f < c.head_dim; ++f) {
          sums[static_cast<std::size_t>(j * c.head_dim + f)].add(ds[i], q[query.q_at(f)]);
        }
        for (std::int64_t f = 0; f < c.value_dim; ++f) {
          sums[key_size + static_cast<std::size_t>(j * c.value_dim + f)].add(query.dropped(p[i], j),
                                                                             dy[query.output_at(f)]);
        }
      }
      if (t % k_query_block == k_query_block - 1 || t + 1 == c.query_length) {
        for (QuerySum<T>& sum : sums) sum.end_block();
      }
    }
    std::vector<T> total(sums.size());
    for (std::size_t i = 0; i < sums.size(); ++i) total[i] = sums[i].total;
    for (int fold = 0; fold < tree[static_cast<std::size_t>(head)].folds; ++fold) {
      for (std::size_t i = 0; i < total.size(); ++i) total[i] = waiting.back()[i] + total[i];
      waiting.pop_back();
    }
    waiting.push_back(std::move(total));
    if (head + 1 < c.heads_per_group) return;
    const Query<T> any{c, sample, group, head, 0};
    for (std::int64_t j = 0; j < c.key_length; ++j) {
      for (std::int64_t f = 0; f < c.head_dim; ++f) {
        static_cast<T*>(gradient.dk)[any.k_at(j, f)] =
            waiting[0][static_cast<std::size_t>(j * c.head_dim + f)];
      }
      for (std::int64_t f = 0; f < c.value_dim; ++f) {
        static_cast<T*>(gradient.dv)[any.v_at(j, f)] =
            waiting[0][key_size + static_cast<std::size_t>(j * c.value_dim + f)];
      }
    }
    waiting.clear();
  });
}

template void attention<float>(const Attention&);
template void attention<double>(const Attention&);
template void attention_gradient<float>(const Attention&, const AttentionGradient&);
template void attention_gradient<double>(const Attention&, const AttentionGradient&);

}  // namespace rankine::reference
