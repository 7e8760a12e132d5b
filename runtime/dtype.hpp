#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rankine {

/// Element types that tensors have. Names and meaning are NumPy's.
enum class DType : std::uint8_t { float32, float64, int32 };

constexpr std::size_t size_of(DType dtype) {
  return dtype == DType::float64 ? 8 : 4;
}
constexpr bool is_floating(DType dtype) {
  return dtype != DType::int32;
}
std::string_view name_of(DType dtype);
/// Throws ConfigError for a name that isn't one of the above, listing those that are.
DType dtype_from_name(std::string_view name);

template <class T>
inline constexpr DType dtype_of = DType::float32;
template <>
inline constexpr DType dtype_of<double> = DType::float64;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::int32;

}  // namespace rankine
