#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/keras_model.hpp"
#include "runtime/compute/backend.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/mesh/mesh.hpp"
#include "tools/rankine/command.hpp"
#include "tools/rankine/settings.hpp"

namespace rankine {

/// What every command that runs a model on ranks has first: settings that are the same on all ranks, the mesh
/// and this rank's device.
struct Start {
  Settings settings;
  Mesh mesh;
  std::unique_ptr<Backend> backend;
};

/// Reads the arguments, lets rank 0 check that it can write what they name, and makes mesh and backend.
/// Collective over the world; throws rankine::Error on all ranks.
Start start(World& world, ModelCommand command, Arguments arguments);

/// The model of the settings with memory. Its values are those of --weights or --init-from, or of its file;
/// a model without any is initialised from the seed, for training only. Not collective.
LoadedModel load_model_of(const Start& start, ModelCommand command);

/// What `make_data` reads: its training data is what evaluate and predict work on.
struct Data {
  std::unique_ptr<Dataset> training;
  std::unique_ptr<Dataset> validation;  ///< of the same kind; a text's ids are those of the training text
};
Data open_data(const Settings& settings, const DataRequest& request);

/// What is about to happen, for people and for the log's first line: a word, and text.
using Facts = std::vector<std::pair<std::string, std::string>>;
Facts facts_of(const Start& start, const Model& model, const Data& data);
void print_facts(const Facts& facts);
/// The same for the log, with versions and settings; values are JSON.
Facts log_start(const Facts& facts, const Settings& settings, int ranks);

}  // namespace rankine
