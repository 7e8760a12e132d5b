// Compiled once an instruction set. See column_kernels.hpp.

#include "runtime/arithmetic/column_kernels.hpp"

#include "runtime/arithmetic/each_vector.hpp"
#include "runtime/arithmetic/leaf.hpp"

namespace rankine::RANKINE_ISA {
namespace {

/// Where term i starts.
struct EveryRow {
  std::int64_t row;
  RANKINE_INLINE std::int64_t operator()(std::int64_t i) const { return i * row; }
};
struct SelectedRows {
  const std::int64_t* selection;
  std::int64_t row;
  RANKINE_INLINE std::int64_t operator()(std::int64_t i) const { return selection[i] * row; }
};

/// The chain of `count` terms from `first` on, for all columns.
template <int count, bool dot, class T, class Place>
RANKINE_INLINE void chain_rows(const ColumnSum<T>& call, Place place, std::int64_t first, T* acc) {
  std::int64_t at[count];
  for (int k = 0; k < count; ++k) at[k] = place(first + k);
  each_vector<T>(call.columns, [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
    auto sum = part.load(acc + i);
    _Pragma("GCC unroll 8") for (int k = 0; k < count; ++k) {
      const auto a = part.load(call.a + at[k] + i);
      if constexpr (dot) {
        sum = fma(a, part.load(call.b + at[k] + i), sum);
      } else {
        sum = sum + a;
      }
    }
    part.store(acc + i, sum);
  });
}

template <bool dot, class T, class Place>
void sum_rows(const ColumnSum<T>& call, Place place) {
  T* top = call.waiting;
  for (std::int64_t s = 0; s < call.step_count; ++s) {
    const LeafStep& step = call.steps[s];
    for (std::int64_t i = 0; i < call.columns; ++i) top[i] = T(0);
    std::int64_t k = step.terms.begin;
    for (; k + 8 <= step.terms.end; k += 8) chain_rows<8, dot>(call, place, k, top);
    for (; k < step.terms.end; ++k) chain_rows<1, dot>(call, place, k, top);
    for (int f = 0; f < step.folds; ++f) {
      T* left = top - call.columns;
      // left + top goes where left was, which is then the top.
      each_vector<T>(call.columns, [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
        part.store(left + i, part.load(left + i) + part.load(top + i));
      });
      top = left;
    }
    top += call.columns;
  }
  for (std::int64_t i = 0; i < call.columns; ++i) call.out[i] = call.step_count == 0 ? T(0) : call.waiting[i];
}

template <class T>
void sum(const ColumnSum<T>& call) {
  if (call.selection != nullptr) {
    sum_rows<false>(call, SelectedRows{call.selection, call.row});
  } else if (call.b != nullptr) {
    sum_rows<true>(call, EveryRow{call.row});
  } else {
    sum_rows<false>(call, EveryRow{call.row});
  }
}

RANKINE_INLINE Vec<double> as_double(Vec<float> v) {
  return widen(v);
}
RANKINE_INLINE Vec<double> as_double(Vec<double> v) {
  return v;
}

template <class T>
double sum_of_squares(const Tile<T>& tile) {
  auto lanes = Vec<double>::zero();
  for (std::int64_t r = 0; r < tile.rows; ++r) {
    const T* x = tile.x + tile.offsets[r];
    // Lanes beyond the row add 0 * 0, which changes nothing.
    each_vector<T>(tile.columns, [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
      const auto v = as_double(part.load(x + i));
      lanes = fma(v, v, lanes);
    });
  }
  return reduce_add(lanes);
}

template <class T>
constexpr ColumnKernels<T> k_kernels{sum<T>, sum_of_squares<T>};

}  // namespace

void fill(ColumnKernels<float>& kernels) {
  kernels = k_kernels<float>;
}
void fill(ColumnKernels<double>& kernels) {
  kernels = k_kernels<double>;
}

}  // namespace rankine::RANKINE_ISA
