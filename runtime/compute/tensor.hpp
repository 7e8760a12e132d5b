#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <span>

#include "runtime/dtype.hpp"
#include "runtime/shape.hpp"

namespace rankine {

/// A view of a contiguous row-major array in a backend's memory. It owns nothing: `Buffer` does. A
/// default-constructed Tensor has no data and means "absent".
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::float32;
  Shape shape;

  explicit operator bool() const { return data != nullptr; }
  std::int64_t elements() const { return shape.elements(); }
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype); }

  /// The elements as T; T must match dtype.
  template <class T>
  T* as() const {
    assert(dtype_of<T> == dtype);
    return static_cast<T*>(data);
  }
  template <class T>
  std::span<T> span() const {
    return {as<T>(), static_cast<std::size_t>(elements())};
  }
  /// The same elements under another shape of equal size.
  Tensor reshaped(Shape to) const {
    assert(to.elements() == elements());
    return {data, dtype, std::move(to)};
  }
  /// Rows [begin, end) of the first dimension.
  Tensor rows(std::int64_t begin, std::int64_t end) const {
    Shape part = shape;
    part[0] = end - begin;
    const std::int64_t row = shape.product(1, shape.rank());
    return {static_cast<std::byte*>(data) + begin * row * static_cast<std::int64_t>(size_of(dtype)), dtype,
            part};
  }
};

/// Owns memory of a backend, aligned to at least 64 bytes.
class Buffer {
 public:
  using Release = void (*)(void*, std::size_t);
  Buffer() = default;
  Buffer(void* data, std::size_t bytes, Release release) : data_(data), bytes_(bytes), release_(release) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) release_(data_, bytes_);
  }
  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::size_t bytes() const { return bytes_; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(release_, other.release_);
  }
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  Release release_ = nullptr;
};

}  // namespace rankine
