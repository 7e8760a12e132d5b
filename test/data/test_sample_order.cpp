#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <unordered_set>
#include <vector>

#include "runtime/data/sample_order.hpp"
#include "runtime/error.hpp"

using rankine::SampleOrder;

namespace {

std::vector<std::int64_t> epoch_of(const SampleOrder& order, std::int64_t epoch) {
  std::vector<std::int64_t> samples;
  for (std::int64_t i = 0; i < order.samples(); ++i) samples.push_back(order.sample(epoch, i));
  return samples;
}

bool is_permutation_of_all(std::vector<std::int64_t> samples) {
  std::sort(samples.begin(), samples.end());
  for (std::int64_t i = 0; i < std::ssize(samples); ++i) {
    if (samples[static_cast<std::size_t>(i)] != i) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a shuffled epoch has every sample once", "[data]") {
  for (std::int64_t samples = 1; samples <= 300; ++samples) {
    const SampleOrder order(samples, 7, true);
    for (std::int64_t epoch = 1; epoch <= 3; ++epoch) {
      CAPTURE(samples, epoch);
      REQUIRE(is_permutation_of_all(epoch_of(order, epoch)));
    }
  }
  for (const std::int64_t samples : {1023, 1024, 1025, 4095, 4096, 4097, 65536, 65537}) {
    CAPTURE(samples);
    REQUIRE(is_permutation_of_all(epoch_of(SampleOrder(samples, 1, true), 1)));
  }
}

TEST_CASE("without shuffling the order is the file's", "[data]") {
  const SampleOrder order(10, 3, false);
  for (std::int64_t i = 0; i < 10; ++i) CHECK(order.sample(5, i) == i);
}

TEST_CASE("the order depends on seed and epoch and on nothing else", "[data]") {
  const SampleOrder order(1000, 42, true);
  CHECK(epoch_of(order, 1) == epoch_of(SampleOrder(1000, 42, true), 1));
  CHECK(epoch_of(order, 1) != epoch_of(order, 2));
  CHECK(epoch_of(order, 1) != epoch_of(SampleOrder(1000, 43, true), 1));
  // Asked backwards, or for one position alone, it is the same.
  const std::vector<std::int64_t> samples = epoch_of(order, 2);
  for (std::int64_t i = 999; i >= 0; --i) REQUIRE(order.sample(2, i) == samples[static_cast<std::size_t>(i)]);
}

TEST_CASE("all orders of a few samples come up about equally often", "[data]") {
  // 24 orders of 4 samples over 9600 epochs and seeds: chi-square with 23 degrees of freedom has mean 23, and
  // exceeds 60 once in 30000.
  std::map<std::vector<std::int64_t>, int> counts;
  for (std::uint64_t seed = 0; seed < 96; ++seed) {
    const SampleOrder order(4, seed, true);
    for (std::int64_t epoch = 1; epoch <= 100; ++epoch) ++counts[epoch_of(order, epoch)];
  }
  CHECK(counts.size() == 24);
  double chi_square = 0;
  for (const auto& [order, count] : counts) chi_square += std::pow(count - 400.0, 2) / 400.0;
  CHECK(chi_square < 60.0);
}

TEST_CASE("every place of an epoch gets every sample about equally often", "[data]") {
  constexpr std::int64_t k_samples = 20;
  constexpr int k_epochs = 4000;
  std::vector<int> counts(k_samples * k_samples);
  const SampleOrder order(k_samples, 5, true);
  for (std::int64_t epoch = 1; epoch <= k_epochs; ++epoch) {
    for (std::int64_t i = 0; i < k_samples; ++i) {
      ++counts[static_cast<std::size_t>(i * k_samples + order.sample(epoch, i))];
    }
  }
  double chi_square = 0;
  for (const int count : counts) chi_square += std::pow(count - 200.0, 2) / 200.0;
  // 19 * 19 degrees of freedom: mean 361, standard deviation 27.
  CHECK(chi_square < 361 + 5 * 27);
}

TEST_CASE("ten thousand million samples need no memory", "[data]") {
  constexpr std::int64_t k_samples = 10'000'000'000;
  const SampleOrder order(k_samples, 11, true);
  std::unordered_set<std::int64_t> seen;
  double sum = 0;
  int in_order = 0;
  constexpr int k_asked = 100'000;
  for (int i = 0; i < k_asked; ++i) {
    // Half of them neighbours at the start, half spread over the whole range, the last position included.
    const std::int64_t position =
        i % 2 == 0 ? i / 2 : k_samples - 1 - static_cast<std::int64_t>(i / 2) * (k_samples / k_asked);
    const std::int64_t sample = order.sample(3, position);
    REQUIRE(sample >= 0);
    REQUIRE(sample < k_samples);
    REQUIRE(seen.insert(sample).second);
    sum += static_cast<double>(sample);
    in_order += sample == position ? 1 : 0;
  }
  CHECK(in_order < 3);
  // The mean of uniform numbers lies within 5 standard errors of the middle.
  CHECK(std::abs(sum / k_asked - k_samples / 2.0) < 5 * k_samples / std::sqrt(12.0 * k_asked));
}

TEST_CASE("the largest number of samples works", "[data]") {
  const std::int64_t samples = std::numeric_limits<std::int64_t>::max();
  const SampleOrder order(samples, 1, true);
  const std::int64_t first = order.sample(1, 0);
  CHECK(first >= 0);
  CHECK(first != order.sample(1, samples - 1));
}

TEST_CASE("no samples are refused", "[data]") {
  CHECK_THROWS_AS(SampleOrder(0, 1, true), rankine::DataError);
  CHECK_THROWS_AS(SampleOrder(-1, 1, false), rankine::DataError);
}
