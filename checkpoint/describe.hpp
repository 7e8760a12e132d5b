#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/shape.hpp"

namespace rankine {

/// An input or output of a model; the batch dimension isn't in its shape.
struct PortRow {
  std::string name;
  Shape shape;
  std::string dtype;
};

struct LayerRow {
  std::string path;
  std::string class_name;
  Shape output;                 ///< of its first call
  std::int64_t parameters = 0;  ///< of all its variables, counted once
  int calls = 0;
};

struct VariableRow {
  std::string path;  ///< Keras's; in a file without a model the name of the group that holds it
  std::string structural_path;
  Shape shape;
  std::string dtype;
  std::int64_t bytes = 0;
  bool trainable = true;
};

/// What a Keras file holds, for people.
struct KerasDescription {
  std::string path;
  std::string kind;           ///< "Keras model", "Keras weights", "Keras config"
  std::string model_name;     ///< "" when the file doesn't say
  std::string keras_version;  ///< of the writer, likewise
  std::string date_saved;
  std::vector<PortRow> inputs;
  std::vector<PortRow> outputs;
  std::vector<LayerRow> layers;
  std::vector<VariableRow> variables;
  std::int64_t parameters = 0;
  std::int64_t trainable_parameters = 0;
  std::int64_t bytes = 0;  ///< of the variables
  std::string optimizer;   ///< "AdamW(learning_rate=0.001, …)"; "" when there is none
  std::string loss;
  std::string metrics;
  std::int64_t state_tensors = 0;  ///< the optimizer's, with its counters
  std::int64_t state_bytes = 0;
  std::optional<std::int64_t> iteration;
  std::string refusal;  ///< why this model can't be trained here; its layers are missing then
};

/// Looks into a `.keras` file or folder, a config JSON, a `.weights.h5` or a sharded `.weights.json`. Not
/// collective. Throws CheckpointError for a file that can't be read; a model that isn't supported is
/// described as far as it goes.
KerasDescription describe_keras_file(const std::string& path);

/// The description as text with tables.
std::string to_text(const KerasDescription& description);

}  // namespace rankine
