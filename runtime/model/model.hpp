#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/compute/backend.hpp"
#include "runtime/model/graph.hpp"

namespace rankine {

/// A group of a Keras weights file: "layers/dense_1" with the layer's own name. Written for every layer, also
/// those without weights.
struct SaveGroup {
  std::string path;  ///< without "/vars"; "" for the model itself
  std::string name;
};

/// A Keras model: its graph, its variables and the config that it came from. Models are made from a config
/// only, so that what was read and what was built in C++ are the same thing and can be written as `.keras`.
class Model {
 public:
  /// From the JSON of a Functional or Sequential envelope (`config.json` of a `.keras`, or
  /// `model.to_json()`). Throws ConfigError; every unsupported layer is named in one message, with what is
  /// supported.
  static Model from_config(const std::string& json);

  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  const std::string& name() const;
  const Graph& graph() const;
  /// In the order of graph().inputs: the names of the InputLayers, or the keys of a dict, which Keras sorts.
  const std::vector<std::string>& input_names() const;
  /// In the order of graph().outputs: "y" when there is one; the keys of a dict; else the names of the layers
  /// that make them, with "_1", "_2" … after a name that comes again.
  const std::vector<std::string>& output_names() const;
  /// Of one sample's outputs, in the order of graph().outputs.
  std::vector<ValueSpec> output_specs() const;
  /// In Keras's model.weights order.
  std::vector<Variable>& variables() &;
  const std::vector<Variable>& variables() const&;
  void variables() && = delete;  // they end with the model
  const std::vector<SaveGroup>& save_groups() const;
  /// The whole envelope as JSON text, compile config included.
  const std::string& config() const;
  /// The compile config as JSON text, or "" when the model isn't compiled.
  std::string compile_config() const;
  void set_compile_config(const std::string& json);
  /// Widest value's rows a sample, for samples_per_leaf.
  std::int64_t rows_per_sample() const;

  /// Gives every variable memory of `backend`. Values are undefined until `initialize` or a reader has filled
  /// them.
  void allocate(Backend& backend);
  /// First values from the initializers.
  void initialize(std::uint64_t seed);

 private:
  struct State;
  explicit Model(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rankine
