#include "runtime/compute/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace rankine {
namespace {

constexpr std::size_t k_page = 4096;
constexpr std::size_t k_large_page = std::size_t{2} << 20;

std::size_t round_up(std::size_t n, std::size_t to) {
  return (n + to - 1) / to * to;
}

void* map_large_pages(std::size_t bytes) {
  const std::size_t mapped = bytes + k_large_page;
  if (mapped < bytes) throw std::bad_alloc();
  void* start = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) throw std::bad_alloc();
  auto* first = static_cast<std::byte*>(start);
  const auto address = reinterpret_cast<std::uintptr_t>(first);
  const std::size_t before = round_up(address, k_large_page) - address;
  if (before > 0) munmap(first, before);
  if (before < k_large_page) munmap(first + before + bytes, k_large_page - before);
  madvise(first + before, bytes, MADV_HUGEPAGE);  // a wish: nothing depends on it
  return first + before;
}

}  // namespace

Buffer allocate_host_memory(std::size_t bytes) {
  if (bytes >= k_large_page) {
    const std::size_t size = round_up(bytes, k_large_page);
    if (size < bytes) throw std::bad_alloc();
    return {map_large_pages(size), bytes,
            [](void* data, std::size_t asked) { munmap(data, round_up(asked, k_large_page)); }};
  }
  const std::size_t size = round_up(std::max<std::size_t>(bytes, 1), k_page);
  void* data = std::aligned_alloc(k_page, size);
  if (data == nullptr) throw std::bad_alloc();
  return {data, bytes, [](void* memory, std::size_t) { std::free(memory); }};
}

}  // namespace rankine
