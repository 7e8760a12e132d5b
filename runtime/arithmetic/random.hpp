#pragma once

#include <array>
#include <cstdint>

namespace rankine {

/// What random numbers are for. With the seed it selects a stream; the numbers are part of a run's meaning.
enum class RandomUse : std::uint32_t { initial_weight = 1, dropout = 2, shuffle = 3 };

/// Philox4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): four
/// 32-bit words for a 64-bit key and a 128-bit counter. Equal on every machine.
std::array<std::uint32_t, 4> philox(std::uint64_t key, std::array<std::uint32_t, 4> counter);

/// Counters, fixed once: the key is always the seed.
///   initial_weight: {block, block >> 32, 0, use << 24 | ordinal of the variable}, element e = word e % 4 of
///   block e / 4 dropout:        {block, sample in the step's global batch, step, use << 24 | call}, element
///   e of that sample likewise shuffle:        {half, round, epoch, use << 24}
constexpr std::uint32_t random_word(RandomUse use, std::uint32_t id) {
  return static_cast<std::uint32_t>(use) << 24 | (id & 0xffffffU);
}

/// [0, 1) from the upper 24 bits: exact in float32.
constexpr float uniform_float(std::uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24F;
}

}  // namespace rankine
