#pragma once

#include <span>
#include <string>

#include "runtime/model/layer.hpp"

namespace rankine {

/// Throws ConfigError "layer 'name' (Class) <what>".
[[noreturn]] void refuse_layer(const LayerCommon& common, const std::string& what);

/// Refuses a call with another number of inputs than `count`.
void expect_inputs(const LayerCommon& common, std::span<const ValueSpec> inputs, std::size_t count);

/// The one input of a layer that computes on floats of its own dtype.
const ValueSpec& one_floating_input(const LayerCommon& common, std::span<const ValueSpec> inputs);

/// Refuses an input whose dtype isn't the layer's.
void expect_dtype(const LayerCommon& common, const ValueSpec& input);

/// A size that must be at least 1.
void expect_positive(const LayerCommon& common, const char* key, std::int64_t value);

/// Keras's axis over batch and sample dimensions as an index into the sample's dimensions. Refuses the batch
/// axis and what lies outside.
int sample_axis(const LayerCommon& common, std::int64_t axis, const Shape& sample);

}  // namespace rankine
