#pragma once

#include <optional>
#include <string>

#include "checkpoint/weights_file.hpp"
#include "runtime/model/model.hpp"
#include "runtime/state.hpp"

namespace rankine {

/// A model as it was found: its weights aren't in it yet (see read_weights), and there are none when the path
/// was that of a config alone.
struct LoadedModel {
  Model model;
  std::optional<WeightsFile> weights;
};

/// From a `.keras` file, a folder with the same content, or a config JSON (`model.to_json()`). Not
/// collective. Throws CheckpointError for a file that can't be read, ConfigError for a model that isn't
/// supported.
LoadedModel load_model(const std::string& path);

/// Writes what `keras.models.load_model` opens: config, weights and the optimizer's state, whole or not at
/// all. An empty state is left out. `path` ends in ".keras". Call it on one rank. Throws CheckpointError.
void write_keras(const std::string& path, const Model& model, const StateDict& optimizer);

/// Writes what `model.load_weights` opens, likewise. `path` ends in ".weights.h5".
void write_weights(const std::string& path, const Model& model, const StateDict& optimizer);

/// Throws UsageError unless `path` ends as one of the two wants; for checks before training starts.
void check_output_name(const std::string& path);
/// Writes one or the other by the name's end.
void write_model(const std::string& path, const Model& model, const StateDict& optimizer);

}  // namespace rankine
