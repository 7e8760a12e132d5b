#include "runtime/data/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/error.hpp"

namespace rankine {

void InputFile::close_descriptor(int descriptor) noexcept {
  ::close(descriptor);
}

InputFile::InputFile(std::string path)
    : path_(std::move(path)), descriptor_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (!descriptor_) throw DataError("can't open '" + path_ + "': " + std::strerror(errno));
  struct stat status {};
  if (::fstat(descriptor_.get(), &status) != 0) {
    throw DataError("can't read '" + path_ + "': " + std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) throw DataError("'" + path_ + "' isn't a regular file");
  size_ = status.st_size;
}

void InputFile::read(std::int64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t got = ::pread(descriptor_.get(), into.data(), into.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw DataError("can't read '" + path_ + "': " + std::strerror(errno));
    if (got == 0) {
      throw DataError("'" + path_ + "' ends at byte " + std::to_string(offset) + ": it was " +
                      std::to_string(size_) + " bytes long when it was opened");
    }
    offset += got;
    into = into.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace rankine
