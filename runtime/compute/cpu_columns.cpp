#include <numeric>
#include <string>

#include "runtime/compute/checks.hpp"
#include "runtime/compute/cpu_backend.hpp"
#include "runtime/error.hpp"

namespace rankine {
namespace {

void check_rows(std::string_view kernel, const checks::Named& x, std::int64_t rows, const Leaves& leaves) {
  if (rows != leaves.extent) {
    checks::fail(kernel, std::string(x.name) + " " + x.tensor.shape.to_string() + " has " +
                             std::to_string(rows) + " rows but the leaves cover " +
                             std::to_string(leaves.extent));
  }
}

/// Rows of a batch in the order of their ids; rows of one id stay in order.
struct RowsById {
  std::vector<std::int64_t> first;  ///< of each id, and the end
  std::vector<std::int64_t> rows;
};

RowsById sort_by_id(std::span<const std::int32_t> ids, std::int64_t vocabulary) {
  RowsById sorted{std::vector<std::int64_t>(static_cast<std::size_t>(vocabulary) + 2),
                  std::vector<std::int64_t>(ids.size())};
  // first[id + 2] counts, then first[id + 1] is where the id's next row goes and ends up as its end.
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= vocabulary) {
      checks::fail("scatter_add",
                   "id " + std::to_string(id) + " is outside [0, " + std::to_string(vocabulary) + ")");
    }
    ++sorted.first[static_cast<std::size_t>(id) + 2];
  }
  std::partial_sum(sorted.first.begin(), sorted.first.end(), sorted.first.begin());
  for (std::size_t row = 0; row < ids.size(); ++row) {
    auto& next = sorted.first[static_cast<std::size_t>(ids[row]) + 1];
    sorted.rows[static_cast<std::size_t>(next++)] = static_cast<std::int64_t>(row);
  }
  return sorted;
}

/// Column blocks: their partial sums stay in the first-level cache.
constexpr std::int64_t k_column_block = 512;

/// How one dimension of a tensor is cut into tiles.
struct TileCut {
  std::int64_t size = 1, leaf = 1;
  std::int64_t tiles() const { return (size + leaf - 1) / leaf; }
  Range tile(std::int64_t i) const { return {i * leaf, std::min(size, (i + 1) * leaf)}; }
};

/// The tree over values[0, count), in place.
double tree_sum(double* values, std::int64_t count) {
  for (std::int64_t width = 1; width < count; width *= 2) {
    for (std::int64_t i = 0; i + width < count; i += 2 * width) values[i] = values[i] + values[i + width];
  }
  return values[0];
}

/// A tensor cut into tiles of feature_leaf(size) on every dimension; tiles are numbered in row-major order.
class TiledShape {
 public:
  explicit TiledShape(const Shape& shape) {
    for (int d = 0; d < shape.rank(); ++d) {
      cuts_.push_back({shape[d], feature_leaf(shape[d])});
      strides_.push_back(shape.product(d + 1, shape.rank()));
    }
    if (cuts_.empty()) {
      cuts_.push_back({1, 1});
      strides_.push_back(1);
    }
  }
  const std::vector<TileCut>& cuts() const { return cuts_; }
  std::int64_t tiles() const {
    return std::accumulate(cuts_.begin(), cuts_.end(), std::int64_t{1},
                           [](std::int64_t n, const TileCut& cut) { return n * cut.tiles(); });
  }
  /// Offsets of a tile's runs along the last dimension, in row-major order; returns their length.
  std::int64_t runs(std::int64_t tile, std::vector<std::int64_t>& offsets) const {
    std::vector<Range> ranges(cuts_.size());
    for (std::size_t d = cuts_.size(); d-- > 0;) {
      ranges[d] = cuts_[d].tile(tile % cuts_[d].tiles());
      tile /= cuts_[d].tiles();
    }
    offsets.assign(1, ranges.back().begin);
    for (std::size_t d = cuts_.size() - 1; d-- > 0;) {
      const std::vector<std::int64_t> inner = offsets;
      offsets.clear();
      for (std::int64_t i = ranges[d].begin; i < ranges[d].end; ++i) {
        for (const std::int64_t offset : inner) offsets.push_back(i * strides_[d] + offset);
      }
    }
    return ranges.back().size();
  }

 private:
  std::vector<TileCut> cuts_;
  std::vector<std::int64_t> strides_;
};

}  // namespace

template <class T>
void CpuBackend::sum_columns(const T* a, const T* b, const Leaves& rows, std::int64_t columns, T* out) {
  const std::vector<LeafStep> steps = leaf_steps(rows);
  const std::int64_t waiting = waiting_sums(steps);
  pool_.parallel_for((columns + k_column_block - 1) / k_column_block, [&](std::int64_t item, int worker) {
    const std::int64_t first = item * k_column_block;
    ColumnSum<T> call;
    call.a = a == nullptr ? nullptr : a + first;  // null without rows
    call.b = b == nullptr ? nullptr : b + first;
    call.row = columns;
    call.columns = std::min(k_column_block, columns - first);
    call.steps = steps.data();
    call.step_count = static_cast<std::int64_t>(steps.size());
    call.waiting = scratch<T>(worker, waiting * call.columns);
    call.out = out + first;
    table<T>().column.sum(call);
  });
}

void CpuBackend::column_sum(Tensor x, const Leaves& rows, Tensor out) {
  checks::present("column_sum", {{"x", x}, {"out", out}});
  checks::same_dtype("column_sum", {{"x", x}, {"out", out}});
  const auto size = checks::rows_and_columns(x);
  check_rows("column_sum", {"x", x}, size.rows, rows);
  checks::size("column_sum", {"out", out}, size.columns);
  checks::with_floating("column_sum", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    sum_columns<T>(x.as<T>(), nullptr, rows, size.columns, out.as<T>());
  });
}

void CpuBackend::column_dot(Tensor a, Tensor b, const Leaves& rows, Tensor out) {
  checks::present("column_dot", {{"a", a}, {"b", b}, {"out", out}});
  checks::same_dtype("column_dot", {{"a", a}, {"b", b}, {"out", out}});
  checks::same_size("column_dot", {{"a", a}, {"b", b}});
  const auto size = checks::rows_and_columns(a);
  check_rows("column_dot", {"a", a}, size.rows, rows);
  checks::size("column_dot", {"out", out}, size.columns);
  checks::with_floating("column_dot", a.dtype, [&](auto zero) {
    using T = decltype(zero);
    sum_columns<T>(a.as<T>(), b.as<T>(), rows, size.columns, out.as<T>());
  });
}

void CpuBackend::scatter_add(Tensor ids, Tensor dy, const Leaves& rows, Tensor out) {
  checks::present("scatter_add", {{"ids", ids}, {"dy", dy}, {"out", out}});
  checks::dtype("scatter_add", {"ids", ids}, DType::int32);
  checks::same_dtype("scatter_add", {{"dy", dy}, {"out", out}});
  checks::rank("scatter_add", {"out", out}, 2);
  const std::int64_t vocabulary = out.shape[0], columns = out.shape[1];
  checks::size("scatter_add", {"dy", dy}, ids.elements() * columns);
  check_rows("scatter_add", {"ids", ids}, ids.elements(), rows);
  const RowsById sorted = sort_by_id(ids.span<std::int32_t>(), vocabulary);
  checks::with_floating("scatter_add", dy.dtype, [&](auto zero) {
    using T = decltype(zero);
    split_rows(vocabulary, columns, [&](std::int64_t id, std::int64_t end, int worker) {
      for (; id < end; ++id) {
        const auto place = static_cast<std::size_t>(id);
        const auto count = static_cast<std::size_t>(sorted.first[place + 1] - sorted.first[place]);
        const std::int64_t* selection = sorted.rows.data() + sorted.first[place];
        const std::vector<LeafStep> steps =
            count == 0 ? std::vector<LeafStep>() : leaf_steps(rows, std::span(selection, count));
        ColumnSum<T> call;
        call.a = dy.as<T>();
        call.selection = selection;
        call.row = call.columns = columns;
        call.steps = steps.data();
        call.step_count = static_cast<std::int64_t>(steps.size());
        call.waiting = scratch<T>(worker, waiting_sums(steps) * columns);
        call.out = out.as<T>() + id * columns;
        table<T>().column.sum(call);
      }
    });
  });
}

double CpuBackend::sum(Tensor x, const Leaves& leaves) {
  checks::present("sum", {{"x", x}});
  check_rows("sum", {"x", x}, x.elements(), leaves);
  return checks::with_floating("sum", x.dtype, [&](auto zero) {
    const auto* terms = x.as<decltype(zero)>();
    std::vector<double> waiting;
    for (const LeafStep& step : leaf_steps(leaves)) {
      double acc = 0.0;
      for (std::int64_t i = step.terms.begin; i < step.terms.end; ++i) acc += static_cast<double>(terms[i]);
      for (int f = 0; f < step.folds; ++f) {
        acc = waiting.back() + acc;
        waiting.pop_back();
      }
      waiting.push_back(acc);
    }
    return waiting.empty() ? 0.0 : waiting.back();
  });
}

namespace {

void check_steps_mask(std::string_view kernel, const Tensor& mask, std::int64_t steps) {
  if (!mask) return;
  checks::dtype(kernel, {"mask", mask}, DType::int32);
  checks::size(kernel, {"mask", mask}, steps);
}

/// The steps of sample s that count, as rows of the sample.
std::vector<std::int64_t> steps_that_count(const Tensor& mask, std::int64_t s, std::int64_t length) {
  const std::int32_t* counts = mask.as<std::int32_t>() + s * length;
  std::vector<std::int64_t> steps;
  for (std::int64_t t = 0; t < length; ++t)
    if (counts[t] != 0) steps.push_back(t);
  return steps;
}

}  // namespace

void CpuBackend::mean_middle(Tensor x, Tensor mask, Tensor out) {
  checks::present("mean_middle", {{"x", x}, {"out", out}});
  checks::same_dtype("mean_middle", {{"x", x}, {"out", out}});
  checks::rank("mean_middle", {"x", x}, 3);
  const std::int64_t samples = x.shape[0], length = x.shape[1], columns = x.shape[2];
  checks::size("mean_middle", {"out", out}, samples * columns);
  check_steps_mask("mean_middle", mask, samples * length);
  const Leaves leaves = Leaves::of(length, k_row_leaf);
  const std::vector<LeafStep> all = leaf_steps(leaves);
  checks::with_floating("mean_middle", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    split_rows(samples, length * columns, [&](std::int64_t s, std::int64_t end, int worker) {
      for (; s < end; ++s) {
        const std::vector<std::int64_t> counting =
            mask ? steps_that_count(mask, s, length) : std::vector<std::int64_t>();
        const std::vector<LeafStep> steps = !mask              ? all
                                            : counting.empty() ? std::vector<LeafStep>()
                                                               : leaf_steps(leaves, counting);
        ColumnSum<T> call;
        call.a = x.as<T>() + s * length * columns;
        call.selection = mask ? counting.data() : nullptr;
        call.row = call.columns = columns;
        call.steps = steps.data();
        call.step_count = static_cast<std::int64_t>(steps.size());
        call.waiting = scratch<T>(worker, waiting_sums(steps) * columns);
        call.out = out.as<T>() + s * columns;
        table<T>().column.sum(call);
        const auto count = mask ? static_cast<std::int64_t>(counting.size()) : length;
        table<T>().elementwise.divide(call.out, static_cast<T>(count), columns, call.out);
      }
    });
  });
}

void CpuBackend::mean_middle_gradient(Tensor dy, Tensor mask, Tensor dx) {
  checks::present("mean_middle_gradient", {{"dy", dy}, {"dx", dx}});
  checks::same_dtype("mean_middle_gradient", {{"dy", dy}, {"dx", dx}});
  checks::rank("mean_middle_gradient", {"dx", dx}, 3);
  const std::int64_t samples = dx.shape[0], length = dx.shape[1], columns = dx.shape[2];
  checks::size("mean_middle_gradient", {"dy", dy}, samples * columns);
  check_steps_mask("mean_middle_gradient", mask, samples * length);
  checks::with_floating("mean_middle_gradient", dy.dtype, [&](auto zero) {
    using T = decltype(zero);
    split_rows(samples, length * columns, [&](std::int64_t s, std::int64_t end, int) {
      for (; s < end && length > 0; ++s) {
        T* first = dx.as<T>() + s * length * columns;
        const std::int32_t* counts = mask ? mask.as<std::int32_t>() + s * length : nullptr;
        const std::int64_t count =
            mask ? std::count_if(counts, counts + length, [](auto c) { return c != 0; }) : length;
        const T* share = nullptr;  // the same for every step that counts
        for (std::int64_t t = 0; t < length; ++t) {
          T* step = first + t * columns;
          if (counts != nullptr && counts[t] == 0) {
            std::fill_n(step, columns, T(0));
          } else if (share != nullptr) {
            std::copy_n(share, columns, step);
          } else {
            table<T>().elementwise.divide(dy.as<T>() + s * columns, static_cast<T>(count), columns, step);
            share = step;
          }
        }
      }
    });
  });
}

double CpuBackend::sum_of_squares(Tensor x) {
  checks::present("sum_of_squares", {{"x", x}});
  if (x.elements() == 0) return 0.0;
  const TiledShape tiled(x.shape);
  std::vector<double> values(static_cast<std::size_t>(tiled.tiles()));
  checks::with_floating("sum_of_squares", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    split_rows(tiled.tiles(), x.elements() / tiled.tiles(), [&](std::int64_t tile, std::int64_t end, int) {
      std::vector<std::int64_t> offsets;
      for (; tile < end; ++tile) {
        const std::int64_t length = tiled.runs(tile, offsets);
        const Tile<T> call{x.as<T>(), offsets.data(), static_cast<std::int64_t>(offsets.size()), length};
        values[static_cast<std::size_t>(tile)] = table<T>().column.sum_of_squares(call);
      }
    });
  });
  // The tree over the last dimension's tiles, then over the one before, and so on.
  std::int64_t left = tiled.tiles();
  for (auto cut = tiled.cuts().rbegin(); cut != tiled.cuts().rend(); ++cut) {
    const std::int64_t width = cut->tiles();
    left /= width;
    for (std::int64_t i = 0; i < left; ++i) {
      values[static_cast<std::size_t>(i)] = tree_sum(values.data() + i * width, width);
    }
  }
  return values[0];
}

}  // namespace rankine
