#pragma once

#include <string_view>

namespace rankine {

/// Entropy of a text's characters given the one before, in nats a character: the loss of the best model that
/// sees one character only. 0 for texts shorter than two characters.
double bigram_entropy(std::string_view text);

}  // namespace rankine
