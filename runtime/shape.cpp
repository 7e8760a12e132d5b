#include "runtime/shape.hpp"

namespace rankine {

std::string Shape::to_string() const {
  std::string text = "(";
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(sizes_[i]);
  }
  if (sizes_.size() == 1) text += ",";
  return text + ")";
}

}  // namespace rankine
