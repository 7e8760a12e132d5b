#include "runtime/model/layers/trailing_axes.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/model/layers/checks.hpp"

namespace rankine {

TrailingAxes::TrailingAxes(ConfigReader& reader) {
  const nlohmann::json* axis = reader.raw("axis");
  if (axis == nullptr) {
    axes_ = {-1};
  } else if (axis->is_array()) {
    axes_ = reader.required<std::vector<std::int64_t>>("axis");
  } else {
    axes_ = {reader.required<std::int64_t>("axis")};
  }
  if (axes_.empty()) reader.refuse("has axis = [], which normalises over nothing");
}

Shape TrailingAxes::of(const LayerCommon& common, const Shape& sample) const {
  std::vector<int> axes;
  for (const std::int64_t axis : axes_) axes.push_back(sample_axis(common, axis, sample));
  std::sort(axes.begin(), axes.end());
  const int first = sample.rank() - static_cast<int>(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != first + static_cast<int>(i))
      refuse_layer(common, "normalises over axes that aren't the last ones of its input " +
                               sample.with_leading(-1).to_string() + "; only the last axes are supported");
  }
  return Shape(std::vector<std::int64_t>(sample.sizes().begin() + first, sample.sizes().end()));
}

Tensor as_rows(const Tensor& x, const Shape& normalised) {
  const std::int64_t columns = normalised.elements();
  return x.reshaped({x.shape.product(0, x.shape.rank() - normalised.rank()), columns});
}

}  // namespace rankine
