#include "runtime/data/sample_order.hpp"

#include <cassert>
#include <string>

#include "runtime/arithmetic/random.hpp"
#include "runtime/error.hpp"

namespace rankine {
namespace {

// Four rounds of a strong function already look random on long halves; short halves (a few samples) need more
// before all orders come up about equally often. Part of a run's meaning.
constexpr std::uint32_t k_rounds = 8;

}  // namespace

SampleOrder::SampleOrder(std::int64_t samples, std::uint64_t seed, bool shuffle)
    : samples_(samples), seed_(seed), shuffle_(shuffle) {
  if (samples < 1) throw DataError("no samples to put in order (" + std::to_string(samples) + ")");
  while (half_bits_ < 32 && (std::uint64_t{1} << (2 * half_bits_)) < static_cast<std::uint64_t>(samples)) {
    ++half_bits_;
  }
}

std::uint64_t SampleOrder::permute(std::uint32_t epoch, std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & mask;
  for (std::uint32_t round = 0; round < k_rounds; ++round) {
    const auto words =
        philox(seed_, {static_cast<std::uint32_t>(right), round, epoch, random_word(RandomUse::shuffle, 0)});
    const std::uint64_t mixed = (left ^ words[0]) & mask;
    left = right;
    right = mixed;
  }
  return left << half_bits_ | right;
}

std::int64_t SampleOrder::sample(std::int64_t epoch, std::int64_t position) const {
  assert(position >= 0 && position < samples_);
  if (!shuffle_) return position;
  // Walking the permutation's cycle from a value inside comes back inside after fewer than four steps on
  // average, and distinct starts end at distinct values.
  auto value = static_cast<std::uint64_t>(position);
  do {
    value = permute(static_cast<std::uint32_t>(epoch), value);
  } while (value >= static_cast<std::uint64_t>(samples_));
  return static_cast<std::int64_t>(value);
}

}  // namespace rankine
