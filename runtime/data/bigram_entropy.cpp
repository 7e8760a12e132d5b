#include "runtime/data/bigram_entropy.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

namespace rankine {

double bigram_entropy(std::string_view text) {
  if (text.size() < 2) return 0.0;
  constexpr std::size_t k_bytes = 256;
  std::vector<std::int64_t> pairs(k_bytes * k_bytes);
  std::vector<std::int64_t> firsts(k_bytes);
  for (std::size_t i = 1; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i - 1]);
    const auto second = static_cast<unsigned char>(text[i]);
    ++pairs[first * k_bytes + second];
    ++firsts[first];
  }
  double nats = 0.0;
  for (std::size_t first = 0; first < k_bytes; ++first) {
    for (std::size_t second = 0; second < k_bytes; ++second) {
      const auto count = static_cast<double>(pairs[first * k_bytes + second]);
      if (count > 0) nats -= count * std::log(count / static_cast<double>(firsts[first]));
    }
  }
  return nats / static_cast<double>(text.size() - 1);
}

}  // namespace rankine
