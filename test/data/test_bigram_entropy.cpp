#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "runtime/data/bigram_entropy.hpp"

using rankine::bigram_entropy;

TEST_CASE("bigram entropy of texts worked out by hand", "[data]") {
  CHECK(bigram_entropy("") == 0.0);
  CHECK(bigram_entropy("a") == 0.0);
  CHECK(bigram_entropy("abababab") == 0.0);  // what follows is always known
  // a is followed by a, b, b; b by a, a: only after a is anything unknown.
  const double after_a = -(std::log(1.0 / 3) + 2 * std::log(2.0 / 3)) / 3;
  CHECK(bigram_entropy("aababa") == Approx(3.0 / 5 * after_a));
}

TEST_CASE("bigram entropy of a text without memory is that of its characters", "[data]") {
  // De Bruijn cycle of four characters: each pair once.
  std::string cycle;
  const std::string letters =
      "\xff"
      "bcd";
  for (std::size_t i = 0; i < 4; ++i) {
    cycle += letters[i];
    for (std::size_t j = i + 1; j < 4; ++j) cycle += {letters[i], letters[j]};
  }
  CHECK(bigram_entropy(cycle + letters[0]) == Approx(std::log(4.0)));
}
