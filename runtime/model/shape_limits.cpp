#include "runtime/model/shape_limits.hpp"

#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/error.hpp"

namespace rankine {

void check_shape_limits(const Shape& shape, const std::string& owner) {
  constexpr std::int64_t k_most_elements = std::int64_t{1} << 40;
  constexpr int k_most_dimensions = 64;
  if (shape.rank() > k_most_dimensions)
    throw ConfigError(owner + " has a shape of " + std::to_string(shape.rank()) +
                      " dimensions; the most is " + std::to_string(k_most_dimensions));
  std::int64_t elements = 1;
  for (const std::int64_t size : shape.sizes()) {
    if (size < 1)
      throw ConfigError(owner + " has the shape " + shape.to_string() + ": sizes must be at least 1");
    if (size > k_most_elements / elements)
      throw ConfigError(owner + " has the shape " + shape.to_string() + ": more than 2^40 elements");
    elements *= size;
  }
}

Shape sample_shape_from_json(const nlohmann::json& batch_shape, const std::string& owner) {
  if (!batch_shape.is_array() || batch_shape.empty())
    throw ConfigError(owner + " has a shape that isn't a list with the batch dimension first");
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 1; i < batch_shape.size(); ++i) {
    if (batch_shape[i].is_null())
      throw ConfigError(owner + " has a dimension of unknown size (None) besides the batch's: " +
                        "build the model with fixed sizes, as Input(shape=(16,))");
    if (!batch_shape[i].is_number_integer())
      throw ConfigError(owner + " has a shape with a size that isn't an integer");
    sizes.push_back(batch_shape[i].get<std::int64_t>());
  }
  Shape shape(std::move(sizes));
  check_shape_limits(shape, owner);
  return shape;
}

}  // namespace rankine
