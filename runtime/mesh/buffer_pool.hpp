#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace rankine {

/// Working memory of collectives, reused: after the first step of a training loop nothing is allocated any
/// more.
class BufferPool {
 public:
  class Buffer {
   public:
    Buffer() = default;
    std::byte* data() const { return memory_.get(); }
    std::size_t size() const { return size_; }

   private:
    friend class BufferPool;
    static constexpr std::align_val_t k_alignment{64};
    struct Free {
      void operator()(std::byte* p) const { ::operator delete(p, k_alignment); }
    };
    std::unique_ptr<std::byte, Free> memory_;
    std::size_t size_ = 0;
  };

  Buffer take(std::size_t bytes);
  void give_back(Buffer buffer);

 private:
  std::vector<Buffer> free_;
};

}  // namespace rankine
