#include <string>

#include "runtime/compute/checks.hpp"
#include "runtime/compute/cpu_backend.hpp"
#include "runtime/error.hpp"

namespace rankine {
namespace {

/// `statistics` holds `each` numbers a row.
void check_norm(std::string_view kernel, const Tensor& x, const Tensor& gamma, const Tensor& statistics,
                std::int64_t each) {
  const auto size = checks::rows_and_columns(x);
  checks::same_dtype(kernel, {{"x", x}, {"gamma", gamma}, {"statistics", statistics}});
  if (gamma) checks::size(kernel, {"gamma", gamma}, size.columns);
  checks::size(kernel, {"statistics", statistics}, size.rows * each);
}

template <class T>
T* data_or_null(const Tensor& tensor) {
  return tensor ? tensor.as<T>() : nullptr;
}
template <class T>
T* row_or_null(T* data, std::int64_t offset) {
  return data == nullptr ? nullptr : data + offset;
}

}  // namespace

void CpuBackend::gather(Tensor table, Tensor ids, Tensor out) {
  checks::present("gather", {{"table", table}, {"ids", ids}, {"out", out}});
  checks::dtype("gather", {"ids", ids}, DType::int32);
  checks::same_dtype("gather", {{"table", table}, {"out", out}});
  checks::rank("gather", {"table", table}, 2);
  const std::int64_t vocabulary = table.shape[0], columns = table.shape[1];
  checks::size("gather", {"out", out}, ids.elements() * columns);
  const auto wanted = ids.span<std::int32_t>();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] < 0 || wanted[i] >= vocabulary) {
      throw DataError("id " + std::to_string(wanted[i]) + " (element " + std::to_string(i) + " of ids " +
                      ids.shape.to_string() + ") is outside the table's rows [0, " +
                      std::to_string(vocabulary) + "); the data must hold ids below the layer's input_dim");
    }
  }
  checks::with_floating("gather", table.dtype, [&](auto zero) {
    using T = decltype(zero);
    split_rows(ids.elements(), columns, [&](std::int64_t r, std::int64_t end, int) {
      for (; r < end; ++r) {
        std::copy_n(table.as<T>() + wanted[static_cast<std::size_t>(r)] * columns, columns,
                    out.as<T>() + r * columns);
      }
    });
  });
}

void CpuBackend::softmax(Tensor x, bool log, Tensor y) {
  checks::present("softmax", {{"x", x}, {"y", y}});
  checks::same_dtype("softmax", {{"x", x}, {"y", y}});
  checks::same_size("softmax", {{"x", x}, {"y", y}});
  const auto size = checks::rows_and_columns(x);
  checks::with_floating("softmax", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    split_rows(size.rows, size.columns, [&](std::int64_t r, std::int64_t end, int) {
      const std::int64_t at = r * size.columns;
      table<T>().row.softmax(x.as<T>() + at, log, end - r, size.columns, y.as<T>() + at);
    });
  });
}

void CpuBackend::softmax_gradient(Tensor y, bool log, Tensor dy, Tensor dx) {
  checks::present("softmax_gradient", {{"y", y}, {"dy", dy}, {"dx", dx}});
  checks::same_dtype("softmax_gradient", {{"y", y}, {"dy", dy}, {"dx", dx}});
  checks::same_size("softmax_gradient", {{"y", y}, {"dy", dy}, {"dx", dx}});
  const auto size = checks::rows_and_columns(y);
  checks::with_floating("softmax_gradient", y.dtype, [&](auto zero) {
    using T = decltype(zero);
    split_rows(size.rows, size.columns, [&](std::int64_t r, std::int64_t end, int) {
      const std::int64_t at = r * size.columns;
      table<T>().row.softmax_gradient(y.as<T>() + at, log, dy.as<T>() + at, end - r, size.columns,
                                      dx.as<T>() + at);
    });
  });
}

template <class T>
void CpuBackend::run_norm(const NormForward<T>& whole, NormKernel<T> kernel, std::int64_t statistics_each) {
  split_rows(whole.rows, whole.columns, [&](std::int64_t r, std::int64_t end, int) {
    NormForward<T> part = whole;
    part.rows = end - r;
    part.x += r * whole.columns;
    part.y += r * whole.columns;
    part.statistics += r * statistics_each;
    (table<T>().norm.*kernel)(part);
  });
}

template <class T>
void CpuBackend::run_norm_gradient(const NormBackward<T>& whole, NormGradientKernel<T> kernel,
                                   std::int64_t statistics_each) {
  split_rows(whole.rows, whole.columns, [&](std::int64_t r, std::int64_t end, int) {
    NormBackward<T> part = whole;
    part.rows = end - r;
    part.x += r * whole.columns;
    part.dy += r * whole.columns;
    part.dx = row_or_null(part.dx, r * whole.columns);
    part.normalized_dy = row_or_null(part.normalized_dy, r * whole.columns);
    part.statistics += r * statistics_each;
    (table<T>().norm.*kernel)(part);
  });
}

void CpuBackend::layer_norm(Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y,
                            Tensor statistics) {
  checks::present("layer_norm", {{"x", x}, {"y", y}, {"statistics", statistics}});
  checks::same_dtype("layer_norm", {{"x", x}, {"beta", beta}, {"y", y}});
  checks::same_size("layer_norm", {{"x", x}, {"y", y}});
  check_norm("layer_norm", x, gamma, statistics, 2);
  const auto size = checks::rows_and_columns(x);
  if (beta) checks::size("layer_norm", {"beta", beta}, size.columns);
  checks::with_floating("layer_norm", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    run_norm<T>({x.as<T>(), data_or_null<T>(gamma), data_or_null<T>(beta), static_cast<T>(epsilon), false,
                 size.rows, size.columns, y.as<T>(), statistics.as<T>()},
                &NormKernels<T>::layer_norm, 2);
  });
}

void CpuBackend::rms_norm(Tensor x, Tensor scale, double epsilon, bool centre_variance, Tensor y,
                          Tensor statistics) {
  checks::present("rms_norm", {{"x", x}, {"y", y}, {"statistics", statistics}});
  checks::same_dtype("rms_norm", {{"x", x}, {"y", y}});
  checks::same_size("rms_norm", {{"x", x}, {"y", y}});
  check_norm("rms_norm", x, scale, statistics, 1);
  const auto size = checks::rows_and_columns(x);
  checks::with_floating("rms_norm", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    run_norm<T>({x.as<T>(), data_or_null<T>(scale), nullptr, static_cast<T>(epsilon), centre_variance,
                 size.rows, size.columns, y.as<T>(), statistics.as<T>()},
                &NormKernels<T>::rms_norm, 1);
  });
}

void CpuBackend::layer_norm_gradient(Tensor x, Tensor gamma, Tensor statistics, Tensor dy, Tensor dx,
                                     Tensor normalized_dy) {
  checks::present("layer_norm_gradient", {{"x", x}, {"statistics", statistics}, {"dy", dy}});
  checks::same_dtype("layer_norm_gradient",
                     {{"x", x}, {"dy", dy}, {"dx", dx}, {"normalized_dy", normalized_dy}});
  checks::same_size("layer_norm_gradient", {{"x", x}, {"dy", dy}});
  if (dx) checks::size("layer_norm_gradient", {"dx", dx}, x.elements());
  if (normalized_dy) checks::size("layer_norm_gradient", {"normalized_dy", normalized_dy}, x.elements());
  check_norm("layer_norm_gradient", x, gamma, statistics, 2);
  const auto size = checks::rows_and_columns(x);
  checks::with_floating("layer_norm_gradient", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    run_norm_gradient<T>({x.as<T>(), data_or_null<T>(gamma), statistics.as<T>(), dy.as<T>(), false, size.rows,
                          size.columns, data_or_null<T>(dx), data_or_null<T>(normalized_dy)},
                         &NormKernels<T>::layer_norm_gradient, 2);
  });
}

void CpuBackend::rms_norm_gradient(Tensor x, Tensor scale, Tensor statistics, bool centre_variance, Tensor dy,
                                   Tensor dx, Tensor normalized_dy) {
  checks::present("rms_norm_gradient", {{"x", x}, {"statistics", statistics}, {"dy", dy}});
  checks::same_dtype("rms_norm_gradient",
                     {{"x", x}, {"dy", dy}, {"dx", dx}, {"normalized_dy", normalized_dy}});
  checks::same_size("rms_norm_gradient", {{"x", x}, {"dy", dy}});
  if (dx) checks::size("rms_norm_gradient", {"dx", dx}, x.elements());
  if (normalized_dy) checks::size("rms_norm_gradient", {"normalized_dy", normalized_dy}, x.elements());
  check_norm("rms_norm_gradient", x, scale, statistics, 1);
  const auto size = checks::rows_and_columns(x);
  checks::with_floating("rms_norm_gradient", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    run_norm_gradient<T>({x.as<T>(), data_or_null<T>(scale), statistics.as<T>(), dy.as<T>(), centre_variance,
                          size.rows, size.columns, data_or_null<T>(dx), data_or_null<T>(normalized_dy)},
                         &NormKernels<T>::rms_norm_gradient, 1);
  });
}

}  // namespace rankine
