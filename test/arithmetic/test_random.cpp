#include <catch2/catch.hpp>

#include "runtime/arithmetic/random.hpp"

using namespace rankine;

TEST_CASE("philox gives the known answers", "[random]") {
  // From the test vectors of the authors' Random123 library.
  using Words = std::array<std::uint32_t, 4>;
  CHECK(philox(0, {0, 0, 0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox(~std::uint64_t{0}, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("uniform floats are exact and below one", "[random]") {
  CHECK(uniform_float(0) == 0.0F);
  CHECK(uniform_float(0xffffffff) == 1.0F - 0x1p-24F);
  CHECK(uniform_float(0x80000000) == 0.5F);
  CHECK(random_word(RandomUse::dropout, 5) == 0x02000005U);
}
