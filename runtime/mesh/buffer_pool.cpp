#include "runtime/mesh/buffer_pool.hpp"

#include <bit>
#include <utility>

namespace rankine {

BufferPool::Buffer BufferPool::take(std::size_t bytes) {
  if (bytes == 0) return {};
  // Powers of two, so that buffers of different collectives fit each other.
  const std::size_t size = std::bit_ceil(bytes);
  for (auto& candidate : free_) {
    if (candidate.size_ != size) continue;
    Buffer found = std::move(candidate);
    candidate = std::move(free_.back());
    free_.pop_back();
    return found;
  }
  Buffer fresh;
  fresh.memory_.reset(static_cast<std::byte*>(::operator new(size, Buffer::k_alignment)));
  fresh.size_ = size;
  return fresh;
}

void BufferPool::give_back(Buffer buffer) {
  if (buffer.size_ > 0) free_.push_back(std::move(buffer));
}

}  // namespace rankine
