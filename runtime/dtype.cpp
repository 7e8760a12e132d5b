#include "runtime/dtype.hpp"

#include <array>
#include <string>

#include "runtime/error.hpp"

namespace rankine {
namespace {

constexpr std::array<std::string_view, 3> k_names{"float32", "float64", "int32"};

}  // namespace

std::string_view name_of(DType dtype) {
  return k_names[static_cast<std::size_t>(dtype)];
}

DType dtype_from_name(std::string_view name) {
  for (std::size_t i = 0; i < k_names.size(); ++i) {
    if (k_names[i] == name) return static_cast<DType>(i);
  }
  throw ConfigError("dtype '" + std::string(name) + "' isn't supported: use float32, float64 or int32");
}

}  // namespace rankine
