#include "runtime/model/naming.hpp"

namespace rankine {
namespace {

// Class names are ASCII; the locale must not change what a letter is.
bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_word(char c) {
  return is_upper(c) || is_lower(c) || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

std::string to_snake_case(std::string_view name) {
  std::string word;
  for (const char c : name)
    if (is_word(c)) word += c;

  // "(.)([A-Z][a-z]+)" -> "\1_\2": matches don't overlap, so a capital right after a match starts none.
  std::string split;
  for (std::size_t i = 0; i < word.size();) {
    split += word[i++];
    if (i + 1 >= word.size() || !is_upper(word[i]) || !is_lower(word[i + 1])) continue;
    split += '_';
    split += word[i++];
    while (i < word.size() && is_lower(word[i])) split += word[i++];
  }

  // "([a-z])([A-Z])" -> "\1_\2", then lower case.
  std::string snake;
  for (std::size_t i = 0; i < split.size(); ++i) {
    if (i > 0 && is_lower(split[i - 1]) && is_upper(split[i])) snake += '_';
    snake += is_upper(split[i]) ? static_cast<char>(split[i] - 'A' + 'a') : split[i];
  }
  return snake;
}

}  // namespace rankine
