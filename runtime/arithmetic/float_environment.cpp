#include "runtime/arithmetic/float_environment.hpp"

#ifdef __SSE2__
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace rankine {

#ifdef __SSE2__
namespace {
constexpr unsigned k_default_control = 0x1f80;  // all exceptions masked, the rest off
constexpr unsigned k_sticky_flags = 0x3f;
}  // namespace

void set_float_environment() {
  _mm_setcsr(k_default_control);
}
bool float_environment_is_set() {
  return (_mm_getcsr() & ~k_sticky_flags) == k_default_control;
}
#else
void set_float_environment() {
  std::fesetenv(FE_DFL_ENV);
}
bool float_environment_is_set() {
  return std::fegetround() == FE_TONEAREST;
}
#endif

}  // namespace rankine
