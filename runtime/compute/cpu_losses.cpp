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
    call.delta = a.delta;
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
  checks::labels("sparse_cross_entropy", x, labels);
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
  checks::targets("categorical_cross_entropy", x, targets);
  checks::with_floating("categorical_cross_entropy", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    run_loss<T>({x, targets, {}, from_logits, label_smoothing, scale, element_loss, dx},
                &LossKernels<T>::categorical_cross_entropy);
  });
}

void CpuBackend::binary_cross_entropy(Tensor x, Tensor targets, bool from_logits, double label_smoothing,
                                      double scale, Tensor element_loss, Tensor dx) {
  check_loss("binary_cross_entropy", x, element_loss, dx);
  checks::targets("binary_cross_entropy", x, targets);
  checks::with_floating("binary_cross_entropy", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    run_loss<T>({x, targets, {}, from_logits, label_smoothing, scale, element_loss, dx},
                &LossKernels<T>::binary_cross_entropy);
  });
}

void CpuBackend::mean_squared_error(Tensor x, Tensor targets, double scale, Tensor element_loss, Tensor dx) {
  check_loss("mean_squared_error", x, element_loss, dx);
  checks::targets("mean_squared_error", x, targets);
  checks::with_floating("mean_squared_error", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    run_loss<T>({x, targets, {}, false, 0.0, scale, element_loss, dx}, &LossKernels<T>::mean_squared_error);
  });
}

void CpuBackend::mean_absolute_error(Tensor x, Tensor targets, double scale, Tensor element_loss, Tensor dx) {
  check_loss("mean_absolute_error", x, element_loss, dx);
  checks::targets("mean_absolute_error", x, targets);
  checks::with_floating("mean_absolute_error", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    run_loss<T>({x, targets, {}, false, 0.0, scale, element_loss, dx}, &LossKernels<T>::mean_absolute_error);
  });
}

void CpuBackend::huber(Tensor x, Tensor targets, double delta, double scale, Tensor element_loss, Tensor dx) {
  check_loss("huber", x, element_loss, dx);
  checks::targets("huber", x, targets);
  checks::with_floating("huber", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    run_loss<T>({x, targets, {}, false, 0.0, scale, element_loss, dx, delta}, &LossKernels<T>::huber);
  });
}

}  // namespace rankine
