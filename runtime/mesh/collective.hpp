#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rankine {

/// The collectives, as messages and the rank board name them.
enum class Collective : std::uint32_t {
  none,
  tree_all_reduce,
  tree_reduce_scatter,
  all_gather,
  all_reduce,
  broadcast,
  barrier,
  split,
  all_gather_text,
};

/// What a call is: ranks must make equal calls in equal order. `bytes` is the size of the data that all know.
struct Call {
  Collective collective = Collective::none;
  std::uint64_t bytes = 0;
  bool operator==(const Call&) const = default;
};

constexpr std::string_view name_of(Collective collective) {
  constexpr std::array<std::string_view, 9> k_names = {"nothing",    "tree_all_reduce", "tree_reduce_scatter",
                                                       "all_gather", "all_reduce",      "broadcast",
                                                       "barrier",    "split",           "all_gather_text"};
  return k_names[static_cast<std::size_t>(collective)];
}

}  // namespace rankine
