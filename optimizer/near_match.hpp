#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rankine {

/// The candidate that `word` was probably meant to be, or "" when none is near (letter case doesn't count).
std::string near_match(std::string_view word, std::span<const std::string> candidates);

/// "a, b, c"
std::string listed(std::span<const std::string> words);

/// As Python's str.lower for ASCII.
std::string lower_case(std::string_view text);

}  // namespace rankine
