#include <atomic>
#include <string>

#include "runtime/compute/checks.hpp"
#include "runtime/compute/cpu_backend.hpp"
#include "runtime/error.hpp"

namespace rankine {
namespace {

void check_loss(std::string_view kernel, const Tensor& x, const Tensor& element_loss, const Tensor& dx) {
  checks::present(kernel, {{"x", x}, {"element_loss", element_loss}});
  checks::same_dtype(kernel, {{"x", x}, {"dx", dx}});
  checks::dtype(kernel, {"element_loss", element_loss}, DType::float64);
  checks::size(kernel, {"element_loss", element_loss}, checks::rows_and_columns(x).rows);
  if (dx) checks::same_size(kernel, {{"x", x}, {"dx", dx}});
}

void check_targets(std::string_view kernel, const Tensor& x, const Tensor& targets) {
  checks::present(kernel, {{"targets", targets}});
  checks::same_dtype(kernel, {{"x", x}, {"targets", targets}});
  checks::same_size(kernel, {{"x", x}, {"targets", targets}});
}

void check_labels(std::string_view kernel, const Tensor& x, const Tensor& labels) {
  checks::present(kernel, {{"labels", labels}});
  checks::dtype(kernel, {"labels", labels}, DType::int32);
  checks::size(kernel, {"labels", labels}, checks::rows_and_columns(x).rows);
}

}  // namespace

template <class T>
void CpuBackend::run_loss(const LossArguments& a, LossKernel<T> kernel) {
  const auto size = checks::rows_and_columns(a.x);
  const std::int64_t leaf = feature_leaf(size.columns);
  split_rows(size.rows, size.columns, [&](std::int64_t r, std::int64_t end, int worker) {
    LossCall<T> call;
    const std::int64_t at = r * size.columns;
    call.x = a.x.as<T>() + at;
    call.targets = a.targets ? a.targets.as<T>() + at : nullptr;
    call.labels = a.labels ? a.labels.as<std::int32_t>() + r : nullptr;
    call.from_logits = a.from_logits;
    call.label_smoothing = a.label_smoothing;
    call.scale = a.scale;
    call.rows = end - r;
    call.columns = size.columns;
    call.leaf = leaf;
    call.element_loss = a.element_loss.as<double>() + r;
    call.dx = a.dx ? a.dx.as<T>() + at : nullptr;
    call.scratch = a.dx ? nullptr : scratch<T>(worker, size.columns);
    (table<T>().loss.*kernel)(call);
  });
}

void CpuBackend::sparse_cross_entropy(Tensor x, Tensor labels, bool from_logits, double scale,
                                      Tensor element_loss, Tensor dx) {
  check_loss("sparse_cross_entropy", x, element_loss, dx);
  check_labels("sparse_cross_entropy", x, labels);
  const std::int64_t classes = checks::rows_and_columns(x).columns;
  const auto wanted = labels.span<std::int32_t>();
  for (std::size_t r = 0; r < wanted.size(); ++r) {
    if (wanted[r] < 0 || wanted[r] >= classes) {
      throw DataError("label " + std::to_string(wanted[r]) + " (element " + std::to_string(r) +
                      " of labels " + labels.shape.to_string() + ") is outside [0, " +
                      std::to_string(classes) + "), the classes that the model predicts");
    }
  }
  checks::with_floating("sparse_cross_entropy", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    run_loss<T>({x, {}, labels, from_logits, 0.0, scale, element_loss, dx},
                &LossKernels<T>::sparse_cross_entropy);
  });
}

void CpuBackend::categorical_cross_entropy(Tensor x, Tensor targets, bool from_logits, double label_smoothing,
                                           double scale, Tensor element_loss, Tensor dx) {
  check_loss("categorical_cross_entropy", x, element_loss, dx);
  check_targets("categorical_cross_entropy", x, targets);
  checks::with_floating("categorical_cross_entropy", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    run_loss<T>({x, targets, {}, from_logits, label_smoothing, scale, element_loss, dx},
                &LossKernels<T>::categorical_cross_entropy);
  });
}

void CpuBackend::binary_cross_entropy(Tensor x, Tensor targets, bool from_logits, double label_smoothing,
                                      double scale, Tensor element_loss, Tensor dx) {
  check_loss("binary_cross_entropy", x, element_loss, dx);
  check_targets("binary_cross_entropy", x, targets);
  checks::with_floating("binary_cross_entropy", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    run_loss<T>({x, targets, {}, from_logits, label_smoothing, scale, element_loss, dx},
                &LossKernels<T>::binary_cross_entropy);
  });
}

void CpuBackend::mean_squared_error(Tensor x, Tensor targets, double scale, Tensor element_loss, Tensor dx) {
  check_loss("mean_squared_error", x, element_loss, dx);
  check_targets("mean_squared_error", x, targets);
  checks::with_floating("mean_squared_error", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    run_loss<T>({x, targets, {}, false, 0.0, scale, element_loss, dx}, &LossKernels<T>::mean_squared_error);
  });
}

template <class F>
std::int64_t CpuBackend::count_rows(std::int64_t rows, std::int64_t columns, F&& hit) {
  std::atomic<std::int64_t> hits{0};
  split_rows(rows, columns, [&](std::int64_t begin, std::int64_t end, int) {
    std::int64_t here = 0;
    for (std::int64_t r = begin; r < end; ++r) here += hit(r) ? 1 : 0;
    hits += here;
  });
  return hits;
}

namespace {

/// Whether row r counts; with an absent mask every row does.
bool counts(const Tensor& mask, std::int64_t r) {
  return !mask || mask.as<std::int32_t>()[r] != 0;
}

void check_mask(std::string_view kernel, const Tensor& mask, std::int64_t entries) {
  if (!mask) return;
  checks::dtype(kernel, {"mask", mask}, DType::int32);
  checks::size(kernel, {"mask", mask}, entries);
}

}  // namespace

std::int64_t CpuBackend::count_sparse_hits(Tensor x, Tensor labels, Tensor mask) {
  checks::present("count_sparse_hits", {{"x", x}});
  check_labels("count_sparse_hits", x, labels);
  const auto size = checks::rows_and_columns(x);
  check_mask("count_sparse_hits", mask, size.rows);
  return checks::with_floating("count_sparse_hits", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    return count_rows(size.rows, size.columns, [&](std::int64_t r) {
      return counts(mask, r) && table<T>().row.arg_max(x.as<T>() + r * size.columns, size.columns) ==
                                    labels.as<std::int32_t>()[r];
    });
  });
}

std::int64_t CpuBackend::count_categorical_hits(Tensor x, Tensor targets, Tensor mask) {
  checks::present("count_categorical_hits", {{"x", x}});
  check_targets("count_categorical_hits", x, targets);
  const auto size = checks::rows_and_columns(x);
  check_mask("count_categorical_hits", mask, size.rows);
  return checks::with_floating("count_categorical_hits", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto arg_max = table<T>().row.arg_max;
    return count_rows(size.rows, size.columns, [&](std::int64_t r) {
      const std::int64_t at = r * size.columns;
      return counts(mask, r) &&
             arg_max(x.as<T>() + at, size.columns) == arg_max(targets.as<T>() + at, size.columns);
    });
  });
}

std::int64_t CpuBackend::count_binary_hits(Tensor x, Tensor targets, double threshold, Tensor mask) {
  checks::present("count_binary_hits", {{"x", x}});
  check_targets("count_binary_hits", x, targets);
  const auto size = checks::rows_and_columns(x);
  check_mask("count_binary_hits", mask, size.rows);
  return checks::with_floating("count_binary_hits", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    return count_rows(x.elements(), 1, [&](std::int64_t i) {
      return counts(mask, i / size.columns) &&
             targets.as<T>()[i] == (x.as<T>()[i] > static_cast<T>(threshold) ? T(1) : T(0));
    });
  });
}

std::int64_t CpuBackend::find_non_finite(Tensor x) {
  checks::present("find_non_finite", {{"x", x}});
  const std::int64_t n = x.elements();
  std::atomic<std::int64_t> first{n};
  checks::with_floating("find_non_finite", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    split_rows(n, 1, [&](std::int64_t begin, std::int64_t end, int) {
      if (begin >= first) return;
      const std::int64_t place = table<T>().row.find_non_finite(x.as<T>() + begin, end - begin);
      if (place < 0) return;
      std::int64_t known = first;
      while (begin + place < known && !first.compare_exchange_weak(known, begin + place)) {
      }
    });
  });
  return first == n ? -1 : first.load();
}

}  // namespace rankine
