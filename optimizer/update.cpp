#include "optimizer/update.hpp"

#include <algorithm>

#include "optimizer/wide_loop.hpp"

namespace rankine {
namespace {

constexpr std::int64_t k_block = 1024;

template <class T>
void decay(std::int64_t count, T weight_decay, T learning_rate, T* w) {
  wide_loop([&]() __attribute__((always_inline)) {
    const T decayed = weight_decay, rate = learning_rate;
    T* const weight = w;
    for (std::int64_t i = 0, n = count; i < n; ++i) weight[i] -= weight[i] * decayed * rate;
  });
}

/// Elements [begin, begin + k_block) of a run.
Elements block_of(const Elements& elements, std::int64_t begin) {
  const std::int64_t bytes = begin * static_cast<std::int64_t>(size_of(elements.dtype));
  const auto from = [&](void* data) {
    return data == nullptr ? data : static_cast<std::byte*>(data) + bytes;
  };
  Elements block{elements.dtype,
                 std::min(k_block, elements.count - begin),
                 static_cast<const std::byte*>(elements.gradient) + bytes,
                 from(elements.weight),
                 {}};
  std::transform(elements.slots.begin(), elements.slots.end(), block.slots.begin(), from);
  return block;
}

}  // namespace

void VariableUpdate::apply(const Elements& elements, std::vector<std::byte>& scratch) const {
  const bool clips = clip.clip.kind != ClipKind::none;
  if (clips) scratch.resize(k_block * sizeof(double));
  for (std::int64_t begin = 0; begin < elements.count; begin += k_block) {
    Elements block = block_of(elements, begin);
    if (clips) {
      clip.apply(block.dtype, block.count, block.gradient, scratch.data());
      block.gradient = scratch.data();
    }
    if (weight_decay) {
      with_floating(block.dtype, [&]<class T>() {
        decay(block.count, static_cast<T>(*weight_decay), T{learning_rate}, block.weight_as<T>());
      });
    }
    rule->update(block);
  }
}

}  // namespace rankine
