#pragma once

namespace rankine {

#if defined(__x86_64__)
template <class Loop>
[[gnu::target("avx2")]] inline void run_avx2(const Loop& loop) {
  loop();
}
#endif

/// Runs a loop over elements compiled for AVX2 where the processor has it, and else for any processor. The
/// loop is a lambda that is always inlined: `wide_loop([&]() __attribute__((always_inline)) { ... })`. It may
/// use + - * / and sqrt only, which round alike at every width, so both give the same bits.
template <class Loop>
inline void wide_loop(const Loop& loop) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return run_avx2(loop);
#endif
  loop();
}

}  // namespace rankine
