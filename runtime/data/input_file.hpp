#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/handle.hpp"

namespace rankine {

/// A regular file that is read by offset. Unlike a mapping, a file that shrinks meanwhile gives an error and
/// not a signal.
class InputFile {
 public:
  /// Throws DataError naming the file and the system's reason.
  explicit InputFile(std::string path);
  const std::string& path() const { return path_; }
  std::int64_t size() const { return size_; }
  /// Fills `into` from `offset` on. Throws DataError when the file ends before.
  void read(std::int64_t offset, std::span<std::byte> into) const;

 private:
  static void close_descriptor(int descriptor) noexcept;
  static int no_descriptor() { return -1; }

  std::string path_;
  UniqueHandle<int, close_descriptor, no_descriptor> descriptor_;
  std::int64_t size_ = 0;
};

}  // namespace rankine
