#pragma once

namespace rankine {

/// Puts this thread's floating-point unit into the one state that all arithmetic here assumes: round to
/// nearest, denormals kept, no traps. Some libraries switch denormals off for the whole process when they are
/// loaded, so every thread that computes calls this first.
void set_float_environment();
/// Whether this thread is in that state (sticky exception flags aside).
bool float_environment_is_set();

}  // namespace rankine
