#pragma once

#include <vector>

namespace rankine {

/// The cores that this process may run on, ascending; empty when the system doesn't say.
std::vector<int> allowed_cores();

}  // namespace rankine
