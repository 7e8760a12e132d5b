#include "runtime/model/model.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/error.hpp"
#include "runtime/model/graph_builder.hpp"
#include "runtime/model/model_tree.hpp"
#include "runtime/model/weights_layout.hpp"

namespace rankine {

// Keeps the order of keys, so that a config that is written again looks like the one that was read.
using Json = nlohmann::ordered_json;

struct Model::State {
  ModelTree tree;
  Graph graph;
  std::vector<std::string> input_names;
  std::vector<std::string> output_names;
  std::vector<Variable> variables;
  std::vector<SaveGroup> groups;
  std::string config;
  Buffer memory;
};

namespace {

/// Largest nesting of lists and objects.
int depth_of(const std::string& json) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

/// Parses text from a file. Deep nesting is refused first, since readers and writers of JSON recurse.
template <class Result>
Result parse(const std::string& text, const std::string& what) {
  constexpr int k_deepest = 500;
  constexpr std::size_t k_longest = std::size_t{1} << 30;
  if (text.size() > k_longest) throw ConfigError(what + " is longer than 1 GiB");
  if (depth_of(text) > k_deepest)
    throw ConfigError(what + " is nested deeper than " + std::to_string(k_deepest) + " levels");
  try {
    return Result::parse(text);
  } catch (const typename Result::exception& error) {
    throw ConfigError(what + " isn't valid JSON: " + error.what());
  }
}

}  // namespace

Model Model::from_config(const std::string& json) {
  const auto envelope = parse<nlohmann::json>(json, "the model's config");
  auto state = std::make_unique<State>();
  state->tree = model_tree_from_config(envelope);
  state->config = json;
  BuiltGraph built = build_graph(state->tree);
  WeightsLayout layout = lay_out_weights(state->tree);
  for (std::size_t i = 0; i < built.graph.calls.size(); ++i) {
    if (built.entries[i] == nullptr) continue;
    for (const DeclaredVariable& variable : built.entries[i]->variables)
      built.graph.calls[i].variables.push_back(variable.ordinal);
  }
  state->graph = std::move(built.graph);
  state->variables = std::move(layout.variables);
  state->groups = std::move(layout.groups);
  for (const Endpoint& input : state->tree.inputs) state->input_names.push_back(input.name);
  for (const Endpoint& output : state->tree.outputs) state->output_names.push_back(output.name);
  return Model(std::move(state));
}

Model::Model(std::unique_ptr<State> state) : state_(std::move(state)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

const std::string& Model::name() const {
  return state_->tree.name;
}
const Graph& Model::graph() const {
  return state_->graph;
}
const std::vector<std::string>& Model::input_names() const {
  return state_->input_names;
}
const std::vector<std::string>& Model::output_names() const {
  return state_->output_names;
}
std::vector<ValueSpec> Model::output_specs() const {
  std::vector<ValueSpec> specs;
  for (const int output : state_->graph.outputs)
    specs.push_back(state_->graph.values[static_cast<std::size_t>(output)].spec);
  return specs;
}
std::vector<Variable>& Model::variables() & {
  return state_->variables;
}
const std::vector<Variable>& Model::variables() const& {
  return state_->variables;
}
const std::vector<SaveGroup>& Model::save_groups() const {
  return state_->groups;
}
const std::string& Model::config() const {
  return state_->config;
}

std::string Model::compile_config() const {
  const auto envelope = Json::parse(state_->config);
  const auto found = envelope.find("compile_config");
  // A model that isn't compiled has none, or an empty one when it was nested.
  return found == envelope.end() || found->empty() ? "" : found->dump();
}

void Model::set_compile_config(const std::string& json) {
  auto compile = parse<Json>(json, "the compile config");
  if (!compile.is_object()) throw ConfigError("the compile config isn't a JSON object");
  auto envelope = Json::parse(state_->config);
  envelope["compile_config"] = std::move(compile);
  state_->config = envelope.dump();
}

std::int64_t Model::rows_per_sample() const {
  std::int64_t most = 1;
  for (const GraphValue& value : state_->graph.values) most = std::max(most, value.spec.rows());
  return most;
}

void Model::allocate(Backend& backend) {
  constexpr std::size_t k_alignment = 64;
  const auto padded = [](const Variable& variable) {
    const std::size_t bytes = static_cast<std::size_t>(variable.shape.elements()) * size_of(variable.dtype);
    return (bytes + k_alignment - 1) / k_alignment * k_alignment;
  };
  std::size_t total = 0;
  for (const Variable& variable : state_->variables) total += padded(variable);
  state_->memory = backend.allocate(total);
  std::byte* at = state_->memory.data();
  for (Variable& variable : state_->variables) {
    variable.value = {at, variable.dtype, variable.shape};
    at += padded(variable);
  }
}

void Model::initialize(std::uint64_t seed) {
  for (Variable& variable : state_->variables)
    variable.rules.initializer->fill(variable.shape, variable.fans, seed,
                                     static_cast<std::uint32_t>(variable.ordinal), 0, variable.value);
}

}  // namespace rankine
