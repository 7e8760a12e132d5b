#pragma once

#include <cstddef>

#include "runtime/compute/tensor.hpp"

namespace rankine {

/// Host memory for tensors, aligned to a page; blocks of 2 MiB and more are aligned to that and asked to be
/// made of large pages, which spares products most of their address misses. Never null, also for 0 bytes. Not
/// cleared. Throws std::bad_alloc.
Buffer allocate_host_memory(std::size_t bytes);

}  // namespace rankine
