#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace rankine {

/// Scratch memory that only grows, aligned to a page: kernels lose up to half their speed on rows that
/// straddle cache lines. Growing discards the contents.
class AlignedBuffer {
 public:
  template <class T>
  T* get(std::size_t count) {
    const std::size_t bytes = (count * sizeof(T) + k_page - 1) / k_page * k_page;
    if (bytes > bytes_) {
      data_.reset();
      bytes_ = 0;
      data_.reset(std::aligned_alloc(k_page, bytes));
      if (!data_) throw std::bad_alloc();
      bytes_ = bytes;
    }
    return static_cast<T*>(data_.get());
  }
  std::size_t bytes() const { return bytes_; }

 private:
  static constexpr std::size_t k_page = 4096;
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<void, Free> data_;
  std::size_t bytes_ = 0;
};

}  // namespace rankine
