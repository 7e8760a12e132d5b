#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace rankine {

/// Sizes of a tensor's dimensions, row-major. An empty shape is a scalar.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes) : sizes_(sizes) {}
  explicit Shape(std::vector<std::int64_t> sizes) : sizes_(std::move(sizes)) {}

  int rank() const { return static_cast<int>(sizes_.size()); }
  std::int64_t operator[](int i) const { return sizes_[static_cast<std::size_t>(i < 0 ? rank() + i : i)]; }
  std::int64_t& operator[](int i) { return sizes_[static_cast<std::size_t>(i < 0 ? rank() + i : i)]; }
  /// Number of elements; 1 for a scalar.
  std::int64_t elements() const { return product(0, rank()); }
  /// Product of the sizes of dimensions [begin, end).
  std::int64_t product(int begin, int end) const {
    std::int64_t n = 1;
    for (int i = begin; i < end; ++i) n *= (*this)[i];
    return n;
  }
  /// This shape with one more dimension of size n in front (a batch of n such samples).
  Shape with_leading(std::int64_t n) const {
    std::vector<std::int64_t> sizes{n};
    sizes.insert(sizes.end(), sizes_.begin(), sizes_.end());
    return Shape(std::move(sizes));
  }
  const std::vector<std::int64_t>& sizes() const { return sizes_; }
  bool operator==(const Shape&) const = default;
  /// "(16, 101)", as Python prints a tuple.
  std::string to_string() const;

 private:
  std::vector<std::int64_t> sizes_;
};

}  // namespace rankine
