#include "runtime/model/layers/checks.hpp"

#include "runtime/error.hpp"
#include "runtime/model/config_reader.hpp"

namespace rankine {

void refuse_layer(const LayerCommon& common, const std::string& what) {
  throw ConfigError(layer_label(common) + " " + what);
}

void expect_inputs(const LayerCommon& common, std::span<const ValueSpec> inputs, std::size_t count) {
  if (inputs.size() != count)
    refuse_layer(common, "takes " + std::to_string(count) + " input" + (count == 1 ? "" : "s") +
                             " but is called with " + std::to_string(inputs.size()));
}

void expect_dtype(const LayerCommon& common, const ValueSpec& input) {
  if (input.dtype == common.dtype) return;
  refuse_layer(common, "computes in " + std::string(name_of(common.dtype)) + " but its input is " +
                           std::string(name_of(input.dtype)) + "; they must be equal");
}

const ValueSpec& one_floating_input(const LayerCommon& common, std::span<const ValueSpec> inputs) {
  expect_inputs(common, inputs, 1);
  expect_dtype(common, inputs[0]);
  return inputs[0];
}

void expect_positive(const LayerCommon& common, const char* key, std::int64_t value) {
  if (value < 1)
    refuse_layer(common,
                 "has " + std::string(key) + " = " + std::to_string(value) + "; it must be at least 1");
}

int sample_axis(const LayerCommon& common, std::int64_t axis, const Shape& sample) {
  const std::int64_t rank = sample.rank() + 1;
  const std::int64_t positive = axis < 0 ? axis + rank : axis;
  if (positive < 0 || positive >= rank)
    refuse_layer(common, "has axis " + std::to_string(axis) + ", which an input of " + std::to_string(rank) +
                             " dimensions (the batch's included) doesn't have");
  if (positive == 0)
    refuse_layer(common, "has axis " + std::to_string(axis) +
                             ", the batch's; samples don't mix, so it must be one of 1 to " +
                             std::to_string(rank - 1));
  return static_cast<int>(positive) - 1;
}

}  // namespace rankine
