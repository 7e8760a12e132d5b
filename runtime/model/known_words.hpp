#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What messages say of words that aren't known.
namespace rankine {

/// The word of `words` nearest to `word` by edit distance, or "" when none is near.
std::string nearest_word(std::string_view word, const std::vector<std::string>& words);

/// The end of a sentence about a word that isn't known: "; did you mean --batch?", or ".". `before` stands
/// before the word that is meant.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known,
                         const std::string& before = "");

/// "a, b, c"
std::string listed(std::span<const std::string> words);

}  // namespace rankine
