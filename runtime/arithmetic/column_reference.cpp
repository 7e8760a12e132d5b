#include "runtime/arithmetic/column_reference.hpp"

#include <cmath>
#include <map>
#include <optional>

#include "runtime/arithmetic/reference.hpp"

namespace rankine::reference {
namespace {

/// value(level, i) of leaf.hpp's tree over the slots that there are; nothing where there is none.
template <class T>
std::optional<T> tree(const std::map<std::int64_t, T>& slots, int level, std::int64_t index) {
  if (level == 0) {
    const auto at = slots.find(index);
    return at == slots.end() ? std::nullopt : std::optional<T>(at->second);
  }
  const auto left = tree(slots, level - 1, 2 * index), right = tree(slots, level - 1, 2 * index + 1);
  if (left && right) return *left + *right;
  return left ? left : right;
}

/// The rows of one id in one column.
template <class T>
T sum_of_id(const std::vector<std::int32_t>& ids, const std::vector<T>& dy, const Leaves& rows,
            std::int64_t id, std::int64_t column, std::int64_t columns) {
  std::map<std::int64_t, T> slots;
  for (std::int64_t r = 0; r < rows.extent; ++r) {
    if (ids[static_cast<std::size_t>(r)] != id) continue;
    const std::int64_t group = r / rows.group;
    const std::int64_t slot = group * rows.slots_per_group() + (r % rows.group) / rows.leaf;
    T& chain = slots.try_emplace(slot, T(0)).first->second;
    chain = chain + dy[static_cast<std::size_t>(r * columns + column)];
  }
  const std::int64_t last = slots.empty() ? 0 : slots.rbegin()->first;
  return tree(slots, root_level(last + 1), 0).value_or(T(0));
}

/// The sum over dimensions [d, rank) of tiles, those of the dimensions before being `tiles`.
template <class T>
double sum_of_tiles(const std::vector<T>& x, const Shape& shape, std::vector<Range>& tiles) {
  const int d = static_cast<int>(tiles.size());
  if (d < shape.rank()) {
    const std::int64_t leaf = feature_leaf(shape[d]);
    std::map<std::int64_t, double> values;
    for (std::int64_t i = 0; i * leaf < shape[d]; ++i) {
      tiles.push_back({i * leaf, std::min(shape[d], (i + 1) * leaf)});
      values[i] = sum_of_tiles(x, shape, tiles);
      tiles.pop_back();
    }
    return tree(values, root_level(static_cast<std::int64_t>(values.size())), 0).value_or(0.0);
  }
  double lanes[16] = {};
  for (std::int64_t e = 0; e < shape.elements(); ++e) {
    bool inside = true;
    std::int64_t place = e, last = 0;
    for (int k = shape.rank() - 1; k >= 0; --k) {
      const std::int64_t index = place % shape[k];
      const Range& range = tiles[static_cast<std::size_t>(k)];
      inside = inside && index >= range.begin && index < range.end;
      if (k == shape.rank() - 1) last = index - range.begin;
      place /= shape[k];
    }
    if (!inside) continue;
    const double v = static_cast<double>(x[static_cast<std::size_t>(e)]);
    lanes[last % 16] = std::fma(v, v, lanes[last % 16]);
  }
  for (int apart = 8; apart > 0; apart /= 2) {
    for (int i = 0; i < apart; ++i) lanes[i] = lanes[i] + lanes[i + apart];
  }
  return lanes[0];
}

}  // namespace

template <class T>
std::vector<T> column_sum(const std::vector<T>& a, const std::vector<T>& b, const Leaves& rows,
                          std::int64_t columns) {
  std::vector<T> out;
  for (std::int64_t c = 0; c < columns; ++c) {
    out.push_back(leaf_sum<T>(rows, [&](std::int64_t r, T acc) {
      const auto at = static_cast<std::size_t>(r * columns + c);
      return b.empty() ? acc + a[at] : std::fma(a[at], b[at], acc);
    }));
  }
  return out;
}

template <class T>
std::vector<T> scatter_add(const std::vector<std::int32_t>& ids, const std::vector<T>& dy, const Leaves& rows,
                           std::int64_t vocabulary, std::int64_t columns) {
  std::vector<T> out;
  for (std::int64_t id = 0; id < vocabulary; ++id) {
    for (std::int64_t c = 0; c < columns; ++c) out.push_back(sum_of_id(ids, dy, rows, id, c, columns));
  }
  return out;
}

template <class T>
double sum_of_squares(const std::vector<T>& x, const Shape& shape) {
  std::vector<Range> tiles;
  return sum_of_tiles(x, shape, tiles);
}

#define RANKINE_INSTANTIATE(T)                                                                    \
  template std::vector<T> column_sum(const std::vector<T>&, const std::vector<T>&, const Leaves&, \
                                     std::int64_t);                                               \
  template std::vector<T> scatter_add(const std::vector<std::int32_t>&, const std::vector<T>&,    \
                                      const Leaves&, std::int64_t, std::int64_t);                 \
  template double sum_of_squares(const std::vector<T>&, const Shape&);
RANKINE_INSTANTIATE(float)
RANKINE_INSTANTIATE(double)
#undef RANKINE_INSTANTIATE

}  // namespace rankine::reference
