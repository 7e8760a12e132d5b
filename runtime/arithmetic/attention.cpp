#include "runtime/arithmetic/attention.hpp"

#include <algorithm>
#include <cassert>

#include "runtime/arithmetic/attention_mask.hpp"
#include "runtime/arithmetic/gemm.hpp"

namespace rankine {
namespace {

/// Rows of A that are packed at once: a block of queries, or as many keys.
constexpr std::int64_t k_block_rows = 128;

std::int64_t round_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b * b;
}

/// The B of several products, packed once in blocks of k_block_terms terms.
template <class T>
struct Packed {
  const T* data = nullptr;
  std::int64_t terms = 0, columns = 0, padded_columns = 0;

  /// Where the panels of term `begin` start, and how far they lie apart.
  const T* at(std::int64_t begin, int tile_columns, std::int64_t& panel) const {
    const std::int64_t block = begin / k_block_terms<T> * k_block_terms<T>;
    panel = std::min(k_block_terms<T>, terms - block) * tile_columns;
    return data + block * padded_columns + (begin - block) * tile_columns;
  }
};

template <class T>
Rows<const T> constant(Rows<T> m) {
  return {m.data, m.row};
}

/// One group of heads of one sample.
template <class T>
class Group {
 public:
  Group(const KernelTable<T>& table, const Attention& call, AttentionWorkspace::Area& area,
        std::int64_t sample, std::int64_t group)
      : table_(table), c_(call), area_(area), sample_(sample), group_(group), mask_(call, sample) {}

  void forward() {
    pack_features_k();
    const Packed<T> v = pack(area_.keys_v, false, values(), c_.key_length, c_.value_dim);
    for (std::int64_t head = 0; head < c_.heads_per_group; ++head) {
      for (std::int64_t first = 0; first < c_.query_length; first += k_query_block) {
        const ScoreBlock<T> block = scores(head, first);
        T* statistics = row_statistics(head, first);
        table_.attention.weights(block, statistics);
        drop(head, first, constant(block.scores), block, block.scores);
        const Rows<T> out = output(c_.output, head, first);
        multiply({constant(block.scores), false}, block.rows, block.columns, v, c_.value_dim, out, false);
        table_.attention.divide(out, block.rows, c_.value_dim, statistics);
      }
    }
  }

  void backward(const AttentionGradient& gradient, const std::vector<LeafStep>& head_tree) {
    pack_features_k();
    features_v_ = pack(area_.features_v, true, values(), c_.value_dim, c_.key_length);
    keys_k_ = pack(area_.keys_k, false, keys(), c_.key_length, c_.head_dim);
    const Rows<T> dk{at(gradient.dk, c_.k_row, c_.k_group), c_.k_row};
    const Rows<T> dv{at(gradient.dv, c_.v_row, c_.v_group), c_.v_row};
    int depth = 0;
    for (std::int64_t head = 0; head < c_.heads_per_group; ++head) {
      head_backward(gradient, head, slot(depth, dk, dv));
      for (int fold = 0; fold < head_tree[static_cast<std::size_t>(head)].folds; ++fold, --depth) {
        const KeyGradients left = slot(depth - 1, dk, dv), right = slot(depth, dk, dv);
        table_.attention.add(left.k, constant(right.k), c_.key_length, c_.head_dim);
        table_.attention.add(left.v, constant(right.v), c_.key_length, c_.value_dim);
      }
      ++depth;
    }
  }

 private:
  struct Operand {
    Rows<const T> data;
    bool transposed = false;
  };
  struct KeyGradients {
    Rows<T> k, v;
  };

  // ---- where things lie
  template <class Pointer>
  auto* at(Pointer data, std::int64_t row, std::int64_t group) const {
    return element(data, sample_ * c_.key_length * row + group_ * group);
  }
  static const T* element(const void* data, std::int64_t index) {
    return static_cast<const T*>(data) + index;
  }
  static T* element(void* data, std::int64_t index) { return static_cast<T*>(data) + index; }
  Rows<const T> keys() const { return {at(c_.k, c_.k_row, c_.k_group), c_.k_row}; }
  Rows<const T> values() const { return {at(c_.v, c_.v_row, c_.v_group), c_.v_row}; }
  template <class Pointer>
  auto* query(Pointer data, std::int64_t head, std::int64_t t) const {
    return element(data, (sample_ * c_.query_length + t) * c_.q_row + group_ * c_.q_group + head * c_.q_head);
  }
  Operand queries(std::int64_t head, std::int64_t first) const {
    return {{query(c_.q, head, first), c_.q_row}, false};
  }
  template <class Pointer>
  auto output(Pointer data, std::int64_t head, std::int64_t t) const {
    const std::int64_t heads = c_.groups * c_.heads_per_group;
    auto* first = element(
        data, ((sample_ * c_.query_length + t) * heads + group_ * c_.heads_per_group + head) * c_.value_dim);
    return Rows<std::remove_pointer_t<decltype(first)>>{first, heads * c_.value_dim};
  }
  T* row_statistics(std::int64_t head, std::int64_t t) const {
    const std::int64_t heads = c_.groups * c_.heads_per_group;
    const std::int64_t row = (sample_ * heads + group_ * c_.heads_per_group + head) * c_.query_length + t;
    return static_cast<T*>(c_.statistics) + 2 * row;
  }
  /// Where the heads' dk and dv wait to be added: slot 0 is the result.
  KeyGradients slot(int index, Rows<T> dk, Rows<T> dv) {
    if (index == 0) return {dk, dv};
    const auto columns = c_.head_dim + c_.value_dim;
    const auto size = static_cast<std::size_t>(c_.key_length * columns);
    T* data =
        area_.heads.template get<T>(size * static_cast<std::size_t>(root_level(c_.heads_per_group) + 1)) +
        size * static_cast<std::size_t>(index - 1);
    return {{data, columns}, {data + c_.head_dim, columns}};
  }

  // ---- steps
  Packed<T> pack(AlignedBuffer& memory, bool transposed, Rows<const T> from, std::int64_t terms,
                 std::int64_t columns) const {
    const std::int64_t padded = round_up(columns, table_.gemm.tile_columns);
    T* data = memory.get<T>(static_cast<std::size_t>(padded * terms));
    for (std::int64_t begin = 0; begin < terms; begin += k_block_terms<T>) {
      const std::int64_t count = std::min(k_block_terms<T>, terms - begin);
      const Rows<const T> block{from.data + (transposed ? begin : begin * from.row), from.row};
      table_.gemm.pack_b(transposed, block, count, columns, data + begin * padded);
    }
    return {data, terms, columns, padded};
  }
  void pack_features_k() { features_k_ = pack(area_.features_k, true, keys(), c_.head_dim, c_.key_length); }

  /// Rows of a scratch block lie a cache line more than the keys apart, so that they don't share cache sets.
  Rows<T> scratch(AlignedBuffer& memory) const {
    const std::int64_t row = round_up(c_.key_length, 16) + 16;
    return {memory.get<T>(static_cast<std::size_t>(k_query_block * row)), row};
  }

  /// Products q . k of the block of queries that begins at `first`.
  ScoreBlock<T> scores(std::int64_t head, std::int64_t first) {
    ScoreBlock<T> block;
    block.scores = scratch(area_.scores);
    block.rows = std::min(k_query_block, c_.query_length - first);
    block.causal = c_.causal && !mask_.hides_keys();
    block.columns = block.causal ? std::min(c_.key_length, first + block.rows) : c_.key_length;
    block.first_visible = first + 1;
    block.scale = static_cast<T>(c_.scale);
    multiply(queries(head, first), block.rows, c_.head_dim, features_k_, block.columns, block.scores, false);
    if (mask_.hides_keys()) mask_.hide(block, first);
    return block;
  }

  bool changes_weights() const { return c_.dropout.rate != 0.0 || (c_.blind_is_zero && mask_.hides_keys()); }

  /// to = from with what dropout keeps, scaled, and 0 for a query that sees nothing, where that is asked for.
  void drop(std::int64_t head, std::int64_t first, Rows<const T> from, const ScoreBlock<T>& block,
            Rows<T> to) const {
    if (!changes_weights()) return;
    const T factor = static_cast<T>(1.0 / (1.0 - c_.dropout.rate));
    const std::int64_t head_of_all = group_ * c_.heads_per_group + head;
    for (std::int64_t r = 0; r < block.rows; ++r) {
      const T* weights = from.data + r * from.row;
      T* kept = to.data + r * to.row;
      if (c_.blind_is_zero && !mask_.sees_something(first + r)) {
        std::fill_n(kept, block.columns, T(0));
      } else if (c_.dropout.rate != 0.0) {
        table_.elementwise.dropout(attention_dropout(c_, sample_, head_of_all, first + r), factor, weights,
                                   block.columns, kept);
      } else if (kept != weights) {
        std::copy_n(weights, block.columns, kept);
      }
    }
  }

  void head_backward(const AttentionGradient& gradient, std::int64_t head, KeyGradients key) {
    for (std::int64_t j = 0; j < c_.key_length; ++j) {
      std::fill_n(key.k.data + j * key.k.row, c_.head_dim, T(0));
      std::fill_n(key.v.data + j * key.v.row, c_.value_dim, T(0));
    }
    for (std::int64_t first = 0; first < c_.query_length; first += k_query_block) {
      const ScoreBlock<T> block = scores(head, first);
      table_.attention.probabilities(block, row_statistics(head, first));
      const Rows<const T> dy = output(gradient.output_gradient, head, first);
      const Rows<T> ds = scratch(area_.gradients);
      multiply({dy, false}, block.rows, c_.value_dim, features_v_, block.columns, ds, false);
      const Rows<T> kept = changes_weights() ? scratch(area_.dropped) : block.scores;
      drop(head, first, constant(block.scores), block, kept);
      drop(head, first, constant(ds), block, ds);
      const Packed<T> packed_dy = pack(area_.block, false, dy, block.rows, c_.value_dim);
      multiply({constant(kept), true}, block.columns, block.rows, packed_dy, c_.value_dim, key.v, true);
      table_.attention.score_gradients(block, ds);
      if (mask_.hides_keys()) mask_.clear_gradients(block, ds, first);
      multiply({constant(ds), false}, block.rows, block.columns, keys_k_, c_.head_dim,
               {query(gradient.dq, head, first), c_.q_row}, false);
      const Packed<T> packed_q = pack(area_.block, false, queries(head, first).data, block.rows, c_.head_dim);
      multiply({constant(ds), true}, block.columns, block.rows, packed_q, c_.head_dim, key.k, true);
    }
  }

  /// out[rows, columns] = a[rows, terms] b[terms, columns]; `accumulate` (with few terms) adds it to out.
  void multiply(Operand a, std::int64_t rows, std::int64_t terms, const Packed<T>& b, std::int64_t columns,
                Rows<T> out, bool accumulate) {
    const ChunkPlan& plan = area_.plans.get(Leaves::of(terms, k_key_leaf), k_block_terms<T>);
    assert(!accumulate || plan.chunks().size() == 1);
    T* packed_a =
        area_.a.template get<T>(static_cast<std::size_t>(k_block_rows * std::min(terms, k_block_terms<T>)));
    T* slots = area_.slots.template get<T>(static_cast<std::size_t>((plan.slots() - 1) * rows * columns));
    const auto slot = [&](int index, std::int64_t row) -> Rows<T> {
      if (index == 0) return {out.data + row * out.row, out.row};
      return {slots + ((index - 1) * rows + row) * columns, columns};
    };
    PanelProduct<T> p;
    p.columns = columns;
    p.b_columns = b.columns;
    p.a_packed = a.transposed;
    p.accumulate = accumulate;
    for (const Chunk& chunk : plan.chunks()) {
      p.terms = chunk.terms.size();
      p.b = b.at(chunk.terms.begin, table_.gemm.tile_columns, p.b_panel);
      p.pieces = plan.pieces(chunk).data();
      p.piece_count = chunk.pieces;
      p.source_count = chunk.folds;
      for (std::int64_t i = 0; i < rows; i += k_block_rows) {
        p.rows = std::min(k_block_rows, rows - i);
        const std::int64_t row = a.transposed ? chunk.terms.begin : i,
                           column = a.transposed ? i : chunk.terms.begin;
        p.a = {a.data.data + row * a.data.row + column, a.data.row};
        if (a.transposed) {
          table_.gemm.pack_a(true, p.a, p.rows, p.terms, packed_a);
          p.a = {packed_a, 0};
        }
        for (int f = 0; f < chunk.folds; ++f)
          p.sources[f] = constant(slot(chunk.store + chunk.folds - 1 - f, i));
        p.out = slot(chunk.store, i);
        table_.gemm.multiply(p);
      }
    }
  }

  const KernelTable<T>& table_;
  const Attention& c_;
  AttentionWorkspace::Area& area_;
  const std::int64_t sample_, group_;
  const AttentionMask mask_;
  Packed<T> features_k_, features_v_, keys_k_;
};

}  // namespace

template <class T>
void attention(const KernelTable<T>& table, const Attention& call, ThreadPool& pool,
               AttentionWorkspace& workspace) {
  assert(call.dtype == dtype_of<T>);
  pool.parallel_for(call.samples * call.groups, [&](std::int64_t item, int worker) {
    Group<T>(table, call, workspace.area(worker), item / call.groups, item % call.groups).forward();
  });
}

template <class T>
void attention_gradient(const KernelTable<T>& table, const Attention& call, const AttentionGradient& gradient,
                        ThreadPool& pool, AttentionWorkspace& workspace) {
  assert(call.dtype == dtype_of<T>);
  const std::vector<LeafStep> head_tree = leaf_steps(Leaves::of(call.heads_per_group, 1));
  pool.parallel_for(call.samples * call.groups, [&](std::int64_t item, int worker) {
    Group<T>(table, call, workspace.area(worker), item / call.groups, item % call.groups)
        .backward(gradient, head_tree);
  });
}

template void attention<float>(const KernelTable<float>&, const Attention&, ThreadPool&, AttentionWorkspace&);
template void attention<double>(const KernelTable<double>&, const Attention&, ThreadPool&,
                                AttentionWorkspace&);
template void attention_gradient<float>(const KernelTable<float>&, const Attention&, const AttentionGradient&,
                                        ThreadPool&, AttentionWorkspace&);
template void attention_gradient<double>(const KernelTable<double>&, const Attention&,
                                         const AttentionGradient&, ThreadPool&, AttentionWorkspace&);

}  // namespace rankine
