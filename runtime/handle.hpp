#pragma once

#include <utility>

namespace rankine {

/// Owns one C handle. `Destroy` is called with the handle unless it equals `Null`; Null is explicit because
/// MPI's and HDF5's null handles aren't `T{}`. Destroy must not throw.
template <class T, auto Destroy, auto Null>
class UniqueHandle {
 public:
  UniqueHandle() = default;
  explicit UniqueHandle(T handle) : handle_(handle) {}
  UniqueHandle(UniqueHandle&& other) noexcept : handle_(std::exchange(other.handle_, Null())) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = std::exchange(other.handle_, Null());
    }
    return *this;
  }
  UniqueHandle(const UniqueHandle&) = delete;
  UniqueHandle& operator=(const UniqueHandle&) = delete;
  ~UniqueHandle() { reset(); }

  T get() const { return handle_; }
  explicit operator bool() const { return handle_ != Null(); }
  T release() { return std::exchange(handle_, Null()); }
  void reset() {
    if (handle_ != Null()) Destroy(handle_);
    handle_ = Null();
  }

 private:
  T handle_ = Null();
};

}  // namespace rankine
