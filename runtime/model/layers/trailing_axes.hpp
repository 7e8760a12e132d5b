#pragma once

#include <nlohmann/json_fwd.hpp>

#include "runtime/model/config_reader.hpp"
#include "runtime/model/layer.hpp"

namespace rankine {

/// The axes that a normalisation runs over: the last ones of its input, in order.
class TrailingAxes {
 public:
  /// Reads `axis`, an integer or a list (Keras writes a list once the layer is built).
  explicit TrailingAxes(ConfigReader& reader);

  /// The shape over which is normalised (that of gamma and beta). Refuses axes that aren't the last ones.
  Shape of(const LayerCommon& common, const Shape& sample) const;

 private:
  std::vector<std::int64_t> axes_;
};

/// x of shape [samples, ..., normalised...] as [rows, columns].
Tensor as_rows(const Tensor& x, const Shape& normalised);

}  // namespace rankine
