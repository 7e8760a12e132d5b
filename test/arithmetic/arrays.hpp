#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "runtime/arithmetic/kernel_table.hpp"
#include "runtime/compute/backend.hpp"

/// Arrays for bit tests of kernels.
namespace rankine::testing {

/// Where a test's numbers come from: what trips kernels up.
enum class Family { normal, wide, denormal, special };
inline constexpr Family k_families[] = {Family::normal, Family::wide, Family::denormal, Family::special};

template <class T>
T random_value(std::mt19937& random, Family family) {
  std::normal_distribution<T> normal;
  const T x = normal(random);
  switch (family) {
    case Family::normal:
      return x;
    case Family::wide:
      return std::ldexp(x, static_cast<int>(random() % 41) - 20);
    case Family::denormal:
      return random() % 2 == 0 ? x * std::numeric_limits<T>::denorm_min() * 1000 : std::ldexp(x, -20);
    case Family::special:
      switch (random() % 64) {
        case 0:
          return std::numeric_limits<T>::infinity();
        case 1:
          return -std::numeric_limits<T>::infinity();
        case 2:
          return std::numeric_limits<T>::quiet_NaN();
        case 3:
          return std::numeric_limits<T>::max();
        default:
          return random() % 3 == 0 ? -T(0) : x;
      }
  }
  return x;
}

template <class T>
std::vector<T> random_array(std::mt19937& random, std::int64_t n, Family family = Family::normal) {
  std::vector<T> v(static_cast<std::size_t>(n));
  for (T& x : v) x = random_value<T>(random, family);
  return v;
}

/// Equal bits; a NaN equals any NaN.
template <class T>
bool same_bits(T a, T b) {
  return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof(T)) == 0;
}
/// Index of the first difference, or -1.
template <class T>
std::int64_t first_difference(const std::vector<T>& a, const std::vector<T>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!same_bits(a[i], b[i])) return static_cast<std::int64_t>(i);
  }
  return a.size() == b.size() ? -1 : static_cast<std::int64_t>(std::min(a.size(), b.size()));
}

/// The sets that this processor runs.
inline std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets;
  for (const auto set : {InstructionSet::portable, InstructionSet::avx2, InstructionSet::avx512}) {
    if (processor_runs(set)) sets.push_back(set);
  }
  return sets;
}

}  // namespace rankine::testing
