#include "checkpoint/atomic_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "runtime/error.hpp"
#include "runtime/handle.hpp"

namespace rankine {
namespace {

int no_descriptor() {
  return -1;
}
void close_descriptor(int descriptor) {
  ::close(descriptor);
}
using Descriptor = UniqueHandle<int, close_descriptor, no_descriptor>;

[[noreturn]] void fail(const std::string& path) {
  throw CheckpointError("can't write " + path + ": " + std::strerror(errno));
}

void sync(const std::string& path, int flags) {
  const Descriptor descriptor(::open(path.c_str(), flags | O_CLOEXEC));
  if (!descriptor || ::fsync(descriptor.get()) != 0) fail(path);
}

/// Where a symbolic link leads, so that the link stays and its target is replaced.
std::string target_of(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  return fs::is_symlink(path, ignored) ? fs::weakly_canonical(path, ignored).string() : path;
}

}  // namespace

AtomicFile::AtomicFile(std::string path)
    : path_(target_of(path)), temporary_(path_ + ".tmp." + std::to_string(::getpid())) {}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) const {
  const Descriptor descriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!descriptor) fail(path_);
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path_);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  sync(temporary_, O_RDONLY);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail(path_);
  temporary_.clear();
  const auto folder = std::filesystem::path(path_).parent_path();
  sync(folder.empty() ? "." : folder.string(), O_RDONLY | O_DIRECTORY);
}

}  // namespace rankine
