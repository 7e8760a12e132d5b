#pragma once

#include "runtime/dtype.hpp"
#include "runtime/shape.hpp"

namespace rankine {

/// What is known of a value before any batch: the shape of one sample (the batch dimension isn't in it) and
/// the dtype.
struct ValueSpec {
  Shape shape;
  DType dtype = DType::float32;
  bool operator==(const ValueSpec&) const = default;
  /// Rows a sample: all dimensions but the last; 1 for a shape of one dimension or none.
  std::int64_t rows() const { return shape.rank() == 0 ? 1 : shape.product(0, shape.rank() - 1); }
  std::int64_t columns() const { return shape.rank() == 0 ? 1 : shape[-1]; }
};

}  // namespace rankine
