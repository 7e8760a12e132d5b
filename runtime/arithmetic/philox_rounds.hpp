#pragma once

// Philox4x32 with 10 rounds on sixteen counters at once, for kernel sources. random.hpp has the definition
// for one.

#include <cstdint>

#include "runtime/arithmetic/simd.hpp"

namespace rankine::RANKINE_ISA {

/// Sixteen counters and then their random numbers: word i of counter b is the lower half of lane b of w[i].
/// The upper halves are noise, which the multiplications ignore.
struct PhiloxBlocks {
  IntVec<double> w[4];

  RANKINE_INLINE void rounds(std::uint64_t key) {
    const auto m0 = IntVec<double>::set1(0xD2511F53), m1 = IntVec<double>::set1(0xCD9E8D57);
    auto k0 = static_cast<std::uint32_t>(key);
    auto k1 = static_cast<std::uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      const auto p0 = multiply_lower_halves(w[0], m0), p1 = multiply_lower_halves(w[2], m1);
      w[0] = shift_right<32>(p1) ^ w[1] ^ IntVec<double>::set1(k0);
      w[1] = p1;
      w[2] = shift_right<32>(p0) ^ w[3] ^ IntVec<double>::set1(k1);
      w[3] = p0;
      k0 += 0x9E3779B9U;
      k1 += 0xBB67AE85U;
    }
  }
  /// All words in order: those of block 0, then of block 1, ...
  RANKINE_INLINE void store(std::uint32_t* words) const {
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "pairs of words are stored as one");
    const auto lower = IntVec<double>::set1(0xffffffff);
    std::int64_t pairs[2][k_lanes];
    ((w[0] & lower) | shift_left<32>(w[1])).store(pairs[0]);
    ((w[2] & lower) | shift_left<32>(w[3])).store(pairs[1]);
    for (int b = 0; b < k_lanes; ++b) {
      __builtin_memcpy(words + 4 * b, &pairs[0][b], sizeof(std::int64_t));
      __builtin_memcpy(words + 4 * b + 2, &pairs[1][b], sizeof(std::int64_t));
    }
  }
};

}  // namespace rankine::RANKINE_ISA
