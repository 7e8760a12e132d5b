#include <algorithm>

#include "test/arithmetic/arrays.hpp"

using namespace rankine;
using namespace rankine::testing;

namespace {

/// What the truth is computed in.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;

/// One function: its kernel, the truth, the arguments that it is for, and the error allowed.
template <class T>
struct Subject {
  const char* name;
  typename ElementaryKernels<T>::Function ElementaryKernels<T>::*kernel;
  Wide<T> (*truth)(Wide<T>);
  double float_ulp, double_ulp;
  double low, high;
};

constexpr double k_inf = std::numeric_limits<double>::infinity();

template <class T>
std::vector<Subject<T>> subjects() {
  using K = ElementaryKernels<T>;
  using W = Wide<T>;
  constexpr W k_sqrt_half = 0.70710678118654752440084436210484904L;
  // Over all floats: exp 1.009, expm1 1.46, log 0.84, log1p 1.40, tanh 1.34, sigmoid 1.48, softplus 1.68,
  // erf 1.37, the normal distribution 1.36 from -1 on and 5.50 below, its bell 1.47.
  return {
      {"exp", &K::exp, [](W x) { return std::exp(x); }, 1.02, 1.1, -k_inf, k_inf},
      {"expm1", &K::expm1, [](W x) { return std::expm1(x); }, 1.5, 2.0, -k_inf, k_inf},
      {"log", &K::log, [](W x) { return std::log(x); }, 0.9, 1.0, 0, k_inf},
      {"log1p_of_unit", &K::log1p_of_unit, [](W x) { return std::log1p(x); }, 1.4, 1.5, 0, 1},
      {"tanh", &K::tanh, [](W x) { return std::tanh(x); }, 1.4, 1.5, -k_inf, k_inf},
      {"sigmoid", &K::sigmoid, [](W x) { return 1 / (1 + std::exp(-x)); }, 1.5, 1.6, -k_inf, k_inf},
      {"softplus", &K::softplus, [](W x) { return std::fmax(x, W(0)) + std::log1p(std::exp(-std::fabs(x))); },
       1.7, 2.0, -k_inf, k_inf},
      {"erf", &K::erf, [](W x) { return std::erf(x); }, 1.4, 1.5, -k_inf, k_inf},
      {"normal_below", &K::normal_below, [](W x) { return std::erfc(-x * k_sqrt_half) / 2; }, 5.6, 5.6,
       -k_inf, k_inf},
      {"normal_below from -1", &K::normal_below, [](W x) { return std::erfc(-x * k_sqrt_half) / 2; }, 1.5,
       1.6, -1, k_inf},
      {"normal_bell", &K::normal_bell, [](W x) { return std::exp(-x * x / 2); }, 1.5, 1.6, -k_inf, k_inf}};
}

/// |got - want| in units of the last place of T at want.
template <class T>
double ulp_error(T got, Wide<T> want) {
  const T nearest = static_cast<T>(want);
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e30;
  if (std::isinf(got) || std::isinf(nearest)) return got == nearest ? 0 : 1e30;
  const int exponent = want == 0 ? -100000 : std::ilogb(want);
  const int lowest = std::numeric_limits<T>::min_exponent - 1;
  const Wide<T> unit =
      std::ldexp(Wide<T>(1), std::max(exponent, lowest) - std::numeric_limits<T>::digits + 1);
  return static_cast<double>(std::fabs(static_cast<Wide<T>>(got) - want) / unit);
}

/// Checks arguments against the truth, and all instruction sets against each other; returns the worst error.
template <class T>
double worst_error(const Subject<T>& subject, const std::vector<T>& x, T* where) {
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<T> first(x.size()), y(x.size());
  bool equal = true;
  for (const auto set : instruction_sets()) {
    auto& out = set == InstructionSet::portable ? first : y;
    (kernels<T>(set).elementary.*subject.kernel)(x.data(), n, out.data());
    if (set != InstructionSet::portable) equal = equal && first_difference(first, y) < 0;
  }
  REQUIRE(equal);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] < subject.low || x[i] > subject.high) continue;
    const double error = ulp_error(first[i], subject.truth(x[i]));
    if (error > worst) {
      worst = error;
      *where = x[i];
    }
  }
  return worst;
}

/// Every `stride`th of all floats.
void sweep(std::uint64_t stride) {
  constexpr std::size_t k_batch = 1 << 16;
  for (const auto& subject : subjects<float>()) {
    double worst = 0;
    float where = 0;
    std::vector<float> x;
    for (std::uint64_t bits = 0; bits <= 0xffffffffU; bits += stride) {
      const auto word = static_cast<std::uint32_t>(bits);
      float value;
      std::memcpy(&value, &word, sizeof value);
      x.push_back(value);
      if (x.size() < k_batch && bits + stride <= 0xffffffffU) continue;
      float here = 0;
      const double error = worst_error(subject, x, &here);
      if (error > worst) {
        worst = error;
        where = here;
      }
      x.clear();
    }
    INFO(subject.name << ": " << worst << " ulp at " << where);
    CHECK(worst <= subject.float_ulp);
    if (stride == 1) WARN(subject.name << ": worst of all floats " << worst << " ulp at " << where);
  }
}

}  // namespace

TEST_CASE("elementary functions are near the truth over the floats", "[elementary]") {
  sweep(10007);
}

TEST_CASE("elementary functions are near the truth over all floats", "[.all-floats]") {
  sweep(1);
}

TEST_CASE("elementary functions of doubles are near the truth", "[elementary]") {
  std::mt19937_64 random(5);
  std::vector<double> x;
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t bits = random();
    double any;
    std::memcpy(&any, &bits, sizeof any);
    x.push_back(any);
    x.push_back(std::uniform_real_distribution<double>(-50, 50)(random));
    x.push_back(std::uniform_real_distribution<double>(-1, 1)(random));
    x.push_back(std::uniform_real_distribution<double>(-750, 750)(random));
    x.push_back(
        std::ldexp(std::uniform_real_distribution<double>(-1, 1)(random), -static_cast<int>(random() % 40)));
  }
  for (const auto& subject : subjects<double>()) {
    double where = 0;
    const double worst = worst_error(subject, x, &where);
    INFO(subject.name << ": " << worst << " ulp at " << where);
    CHECK(worst <= subject.double_ulp);
  }
}

TEMPLATE_TEST_CASE("elementary functions at the ends", "[elementary]", float, double) {
  using T = TestType;
  using K = ElementaryKernels<T>;
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const T least = std::numeric_limits<T>::denorm_min();
  struct {
    typename K::Function K::*kernel;
    T x, y;
  } const cases[] = {{&K::exp, inf, inf},
                     {&K::exp, -inf, 0},
                     {&K::exp, nan, nan},
                     {&K::exp, T(-0.0), 1},
                     {&K::exp, least, 1},
                     {&K::exp, T(1e4), inf},
                     {&K::exp, T(-1e4), 0},
                     {&K::expm1, inf, inf},
                     {&K::expm1, -inf, -1},
                     {&K::expm1, nan, nan},
                     {&K::expm1, -T(0), -T(0)},
                     {&K::expm1, least, least},
                     {&K::log, T(0), -inf},
                     {&K::log, -T(0), -inf},
                     {&K::log, inf, inf},
                     {&K::log, T(-1), nan},
                     {&K::log, -inf, nan},
                     {&K::log, nan, nan},
                     {&K::log, T(1), 0},
                     {&K::tanh, inf, 1},
                     {&K::tanh, -inf, -1},
                     {&K::tanh, nan, nan},
                     {&K::tanh, -T(0), -T(0)},
                     {&K::tanh, least, least},
                     {&K::sigmoid, inf, 1},
                     {&K::sigmoid, -inf, 0},
                     {&K::sigmoid, nan, nan},
                     {&K::softplus, inf, inf},
                     {&K::softplus, -inf, 0},
                     {&K::softplus, nan, nan},
                     {&K::erf, inf, 1},
                     {&K::erf, -inf, -1},
                     {&K::erf, nan, nan},
                     {&K::erf, -T(0), -T(0)},
                     {&K::normal_below, inf, 1},
                     {&K::normal_below, -inf, 0},
                     {&K::normal_below, nan, nan},
                     {&K::normal_below, T(0), T(0.5)},
                     {&K::normal_bell, inf, 0},
                     {&K::normal_bell, T(0), 1},
                     {&K::normal_bell, nan, nan}};
  for (const auto set : instruction_sets()) {
    int i = 0;
    for (const auto& c : cases) {
      T y = 0;
      (kernels<T>(set).elementary.*c.kernel)(&c.x, 1, &y);
      INFO(name_of(set) << ", case " << i++ << ": x " << c.x << ", got " << y << ", want " << c.y);
      CHECK(same_bits(y, c.y));
    }
  }
}
