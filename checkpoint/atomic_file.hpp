#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace rankine {

/// A file that appears under its name whole or not at all: it is written under a temporary name in the same
/// folder and renamed once it is on the disk. Without `commit` the destructor removes it, and a file that had
/// the name before stays as it was. Throws CheckpointError with the system's reason.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// For libraries that write by name.
  const std::string& temporary() const { return temporary_; }
  void write(std::span<const std::byte> bytes) const;
  void commit();

 private:
  std::string path_;
  std::string temporary_;
};

}  // namespace rankine
