#include "runtime/compute/checks.hpp"

#include <stdexcept>

namespace rankine::checks {

void fail(std::string_view kernel, const std::string& what) {
  throw std::logic_error(std::string(kernel) + ": " + what);
}

void require(bool holds, std::string_view kernel, std::string_view what) {
  if (!holds) fail(kernel, std::string(what));
}

void present(std::string_view kernel, std::initializer_list<Named> tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (!tensor && tensor.elements() != 0) {
      fail(kernel, std::string(name) + " " + tensor.shape.to_string() + " has no memory");
    }
  }
}

void same_dtype(std::string_view kernel, std::initializer_list<Named> tensors) {
  const Named& first = *tensors.begin();
  for (const Named& other : tensors) {
    if (other.tensor && other.tensor.dtype != first.tensor.dtype) {
      fail(kernel, std::string(other.name) + " is " + std::string(name_of(other.tensor.dtype)) + " but " +
                       std::string(first.name) + " is " + std::string(name_of(first.tensor.dtype)));
    }
  }
}

void dtype(std::string_view kernel, Named tensor, DType dtype) {
  if (tensor.tensor.dtype != dtype) {
    fail(kernel, std::string(tensor.name) + " is " + std::string(name_of(tensor.tensor.dtype)) +
                     " but must be " + std::string(name_of(dtype)));
  }
}

void same_size(std::string_view kernel, std::initializer_list<Named> tensors) {
  const Named& first = *tensors.begin();
  for (const Named& other : tensors) {
    if (other.tensor.elements() != first.tensor.elements()) {
      fail(kernel, std::string(other.name) + " " + other.tensor.shape.to_string() + " doesn't fit " +
                       std::string(first.name) + " " + first.tensor.shape.to_string());
    }
  }
}

void size(std::string_view kernel, Named tensor, std::int64_t elements) {
  if (tensor.tensor.elements() != elements) {
    fail(kernel, std::string(tensor.name) + " " + tensor.tensor.shape.to_string() + " must have " +
                     std::to_string(elements) + " elements");
  }
}

void rank(std::string_view kernel, Named tensor, int rank) {
  if (tensor.tensor.shape.rank() != rank) {
    fail(kernel, std::string(tensor.name) + " " + tensor.tensor.shape.to_string() + " must have " +
                     std::to_string(rank) + " dimensions");
  }
}

void targets(std::string_view kernel, const Tensor& x, const Tensor& targets) {
  present(kernel, {{"targets", targets}});
  same_dtype(kernel, {{"x", x}, {"targets", targets}});
  same_size(kernel, {{"x", x}, {"targets", targets}});
}

void labels(std::string_view kernel, const Tensor& x, const Tensor& labels) {
  present(kernel, {{"labels", labels}});
  dtype(kernel, {"labels", labels}, DType::int32);
  size(kernel, {"labels", labels}, rows_and_columns(x).rows);
}

RowsAndColumns rows_and_columns(const Tensor& tensor) {
  const Shape& shape = tensor.shape;
  return shape.rank() == 0 ? RowsAndColumns{1, 1}
                           : RowsAndColumns{shape.product(0, shape.rank() - 1), shape[-1]};
}

}  // namespace rankine::checks
