#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include "runtime/mesh/agree.hpp"

namespace rankine {

/// The value that `make` gives on each rank of `group`, or one error on all of them. Collective.
template <class Make>
std::invoke_result_t<Make> agreed(Communicator& group, Make&& make) {
  std::optional<std::invoke_result_t<Make>> value;
  agree(group, [&] { value.emplace(make()); });
  return std::move(*value);
}

}  // namespace rankine
