#pragma once

// Philox4x32 with 10 rounds on several counters at once, in a kernel's own namespace. random.hpp has the
// definition for one.

#include <cstdint>

#include "runtime/arithmetic/simd.hpp"

namespace rankine::RANKINE_ISA {

/// w[i][b] is word i of counter b on entry, of its random numbers on return.
template <int blocks>
RANKINE_INLINE void philox_rounds(std::uint64_t key, std::uint32_t (&w)[4][blocks]) {
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int b = 0; b < blocks; ++b) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53} * w[0][b];
      const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * w[2][b];
      w[0][b] = static_cast<std::uint32_t>(p1 >> 32) ^ w[1][b] ^ k0;
      w[1][b] = static_cast<std::uint32_t>(p1);
      w[2][b] = static_cast<std::uint32_t>(p0 >> 32) ^ w[3][b] ^ k1;
      w[3][b] = static_cast<std::uint32_t>(p0);
    }
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
}

}  // namespace rankine::RANKINE_ISA
