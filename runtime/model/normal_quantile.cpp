#include "runtime/model/normal_quantile.hpp"

#include <array>
#include <bit>
#include <cmath>

namespace rankine {
namespace {

using Coefficients = std::array<double, 8>;

/// c[0] + c[1] x + ... + c[7] x^7
double polynomial(const Coefficients& c, double x) {
  double sum = c[7];
  for (int i = 6; i >= 0; --i) sum = sum * x + c[static_cast<std::size_t>(i)];
  return sum;
}

// M. J. Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution", Applied Statistics 37
// (1988): PPND16's coefficients. Its third region (probabilities beyond e^-25) isn't reached from 32 random
// bits.
constexpr Coefficients k_centre_numerator = {
    3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
    4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3};
constexpr Coefficients k_centre_denominator = {1.0,
                                               4.2313330701600911252e1,
                                               6.8718700749205790830e2,
                                               5.3941960214247511077e3,
                                               2.1213794301586595867e4,
                                               3.9307895800092710610e4,
                                               2.8729085735721942674e4,
                                               5.2264952788528545610e3};
constexpr Coefficients k_tail_numerator = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                           5.76949722146069140550e0,  3.64784832476320460504e0,
                                           1.27045825245236838258e0,  2.41780725177450611770e-1,
                                           2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr Coefficients k_tail_denominator = {1.0,
                                             2.05319162663775882187e0,
                                             1.67638483018380384940e0,
                                             6.89767334985100004550e-1,
                                             1.48103976427480074590e-1,
                                             1.51986665636164571966e-2,
                                             5.47593808499534494600e-4,
                                             1.05075007164441684324e-9};

}  // namespace

double portable_log(double x) {
  // x = m * 2^exponent with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh((m - 1) / (m + 1)).
  const auto bits = std::bit_cast<std::uint64_t>(x);
  constexpr std::uint64_t k_mantissa = (std::uint64_t{1} << 52) - 1;
  auto exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & k_mantissa) | (std::uint64_t{1023} << 52));
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1.0) / (m + 1.0);
  const double square = s * s;
  double series = 0.0;
  for (int i = 23; i >= 3; i -= 2) series = (series + 1.0 / i) * square;
  // log 2 in two parts, the first with trailing zeros, so that exponent times it is exact.
  constexpr double k_log2_high = 0x1.62e42fefa38p-1;
  constexpr double k_log2_low = 0x1.ef35793c7673p-45;
  return exponent * k_log2_high + (2.0 * s + (2.0 * s * series + exponent * k_log2_low));
}

double normal_quantile(double probability) {
  const double q = probability - 0.5;
  if (std::fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(k_centre_numerator, r) / polynomial(k_centre_denominator, r);
  }
  const double tail = q < 0.0 ? probability : 1.0 - probability;
  const double r = std::sqrt(-portable_log(tail)) - 1.6;
  const double value = polynomial(k_tail_numerator, r) / polynomial(k_tail_denominator, r);
  return q < 0.0 ? -value : value;
}

}  // namespace rankine
