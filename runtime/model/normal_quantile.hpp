#pragma once

#include <cstdint>

namespace rankine {

/// The normal distribution's quantile for a probability in (1e-11, 1 - 1e-11), to about 1e-15. Only + - * /
/// and sqrt are used, whose results IEEE 754 fixes, so that the first weights are equal on every machine.
double normal_quantile(double probability);

/// The natural logarithm of a positive normal number, to about 1e-16, by the same means.
double portable_log(double x);

}  // namespace rankine
