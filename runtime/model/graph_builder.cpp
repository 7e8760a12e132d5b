#include "runtime/model/graph_builder.hpp"

#include <algorithm>

#include "runtime/error.hpp"
#include "runtime/model/layers/mask_layers.hpp"
#include "runtime/model/shape_limits.hpp"

namespace rankine {
namespace {

/// Small configs can unfold to any number of calls: nested models that call nested models.
constexpr std::size_t k_most_calls = 100'000;

class DeclarationList : public VariableBuilder {
 public:
  explicit DeclarationList(std::string owner) : owner_(std::move(owner)) {}
  void add(const Group& group, const std::string& name, const Shape& shape, WeightRules rules, Fans fans,
           bool trainable) override {
    check_shape_limits(shape, owner_ + ", variable " + name + ",");
    try {
      rules.initializer->check(shape);
      if (rules.constraint) rules.constraint->check(shape);
    } catch (const ConfigError& error) {
      throw ConfigError(owner_ + ", variable " + name + ": " + error.what());
    }
    variables.push_back({group, name, shape, std::move(rules), fans, trainable, -1});
  }
  std::vector<DeclaredVariable> variables;

 private:
  std::string owner_;
};

std::string describe(const ValueSpec& spec) {
  return spec.shape.to_string() + " " + std::string(name_of(spec.dtype));
}

class GraphBuilder {
 public:
  BuiltGraph build(ModelTree& model) {
    Graph& graph = built_.graph;
    for (const Endpoint& input : model.inputs) {
      const LayerEntry& entry = model.layers[static_cast<std::size_t>(input.tensor.layer)];
      if (!entry.input)
        throw ConfigError(
            "the model '" + model.name +
            "' doesn't say the shape of its input: put keras.Input(shape=…) in front of its layers");
      graph.inputs.push_back(add_value(*entry.input, -1));
    }
    graph.outputs = run(model, "", graph.inputs);
    if (graph.calls.empty()) throw ConfigError("the model '" + model.name + "' computes nothing");
    return std::move(built_);
  }

 private:
  int add_value(const ValueSpec& spec, int producer) {
    built_.graph.values.push_back({spec, producer});
    return static_cast<int>(built_.graph.values.size()) - 1;
  }
  const ValueSpec& spec_of(int value) const {
    return built_.graph.values[static_cast<std::size_t>(value)].spec;
  }

  /// One call of a model: the values of its outputs for these values of its inputs.
  std::vector<int> run(ModelTree& model, const std::string& path, const std::vector<int>& inputs) {
    // results[layer][node] are the values that the call has made.
    std::vector<std::vector<std::vector<int>>> results(model.layers.size());
    for (std::size_t i = 0; i < model.layers.size(); ++i) results[i].resize(model.layers[i].calls.size());
    const auto value_of = [&](const TensorReference& r) {
      return results[static_cast<std::size_t>(r.layer)][static_cast<std::size_t>(r.node)]
                    [static_cast<std::size_t>(r.tensor)];
    };
    for (std::size_t i = 0; i < inputs.size(); ++i)
      results[static_cast<std::size_t>(model.inputs[i].tensor.layer)][0] = {inputs[i]};

    for (const CallPlace place : model.order) {
      LayerEntry& entry = model.layers[static_cast<std::size_t>(place.layer)];
      if (entry.is_input) continue;
      const CallDescription& call = entry.calls[static_cast<std::size_t>(place.node)];
      std::vector<int> arguments;
      for (const TensorReference& input : call.inputs) arguments.push_back(value_of(input));
      const std::string full = path.empty() ? entry.name : path + "/" + entry.name;
      auto& made = results[static_cast<std::size_t>(place.layer)][static_cast<std::size_t>(place.node)];
      made = entry.model ? call_model(*entry.model, full, call, arguments)
                         : std::vector<int>{call_layer(entry, path, full, call, arguments)};
    }
    std::vector<int> outputs;
    for (const Endpoint& output : model.outputs) outputs.push_back(value_of(output.tensor));
    return outputs;
  }

  std::vector<int> call_model(ModelTree& model, const std::string& path, const CallDescription& call,
                              const std::vector<int>& arguments) {
    const std::string owner = "the model '" + path + "'";
    const auto given = arguments.size() - call.mask_names.size();
    const std::vector<int> inputs =
        match_inputs(model, owner, std::span(call.keys).first(given), std::span(arguments).first(given));
    // The config repeats the masks that its values have, for Keras to follow.
    const std::vector<int> masks = masks_of(inputs);
    if (!call.mask_names.empty() &&
        std::all_of(masks.begin(), masks.end(), [](int mask) { return mask < 0; }))
      throw ConfigError(owner + " is called with a mask for inputs that have none, which isn't supported");
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const LayerEntry& entry = model.layers[static_cast<std::size_t>(model.inputs[i].tensor.layer)];
      if (entry.input && !(*entry.input == spec_of(inputs[i])))
        throw ConfigError(owner + " takes " + describe(*entry.input) + " as its input '" +
                          model.inputs[i].name + "' but is called with " + describe(spec_of(inputs[i])));
    }
    return run(model, path, inputs);
  }

  /// Inputs given as a dict go by name, others by position.
  static std::vector<int> match_inputs(const ModelTree& model, const std::string& owner,
                                       std::span<const std::string> keys, std::span<const int> arguments) {
    if (arguments.size() != model.inputs.size())
      throw ConfigError(owner + " has " + std::to_string(model.inputs.size()) +
                        " inputs but is called with " + std::to_string(arguments.size()));
    const bool named =
        std::none_of(keys.begin(), keys.end(), [](const std::string& key) { return key.empty(); });
    if (!named) return {arguments.begin(), arguments.end()};
    std::vector<int> inputs;
    for (const Endpoint& input : model.inputs) {
      const auto found = std::find(keys.begin(), keys.end(), input.name);
      if (found == keys.end()) throw ConfigError(owner + " is called without its input '" + input.name + "'");
      inputs.push_back(arguments[static_cast<std::size_t>(found - keys.begin())]);
    }
    return inputs;
  }

  int add_call(const LayerEntry* entry, GraphCall call, const ValueSpec& output) {
    if (built_.graph.calls.size() >= k_most_calls)
      throw ConfigError("the model has more than " + std::to_string(k_most_calls) + " calls of layers");
    call.output = add_value(output, static_cast<int>(built_.graph.calls.size()));
    built_.entries.push_back(entry);
    built_.graph.calls.push_back(std::move(call));
    return built_.graph.calls.back().output;
  }

  int call_layer(LayerEntry& entry, const std::string& path, const std::string& full,
                 const CallDescription& description, std::vector<int> arguments) {
    const std::vector<int> given = cut_masks(description, arguments);
    std::vector<ValueSpec> specs;
    for (const int value : arguments) specs.push_back(spec_of(value));
    GraphCall call;
    call.layer = entry.layer.get();
    call.path = full;
    call.arguments = description.arguments;
    call.inputs = arguments;
    call.number = number_++;
    ValueSpec output;
    bool is_view = false;
    try {
      declare_variables(entry, full, specs);
      output = entry.layer->output(specs);
      is_view = entry.layer->plan(specs, description.arguments).output_is_input;
    } catch (const ConfigError& error) {
      // The layer knows its own name only.
      if (path.empty()) throw;
      throw ConfigError("in the model '" + path + "': " + error.what());
    }
    check_shape_limits(output.shape, "the output of layer '" + full + "' (" + entry.class_name + ")");
    MaskedCall masked{"layer '" + full + "' (" + entry.class_name + ")", full, *entry.kind, arguments,
                      masks_of(arguments)};
    for (std::size_t i = 0; i < given.size(); ++i) take_mask(description.mask_names[i], given[i], masked);
    if (entry.kind->masks == MaskRule::pools || entry.kind->masks == MaskRule::weighs ||
        is_attention(*entry.kind))
      call.masks = masked.masks;
    if (entry.kind->masks == MaskRule::weighs && masked.masks[0] >= 0) entry.layer->expect_maskable(specs);
    if (masked.pairs >= 0) call.masks.push_back(masked.pairs);
    const bool zero = entry.layer->masks_zero(description.arguments);
    // Keras gives back the very same tensor where nothing changes, and with it its mask.
    const bool same = is_view && output == specs[0];
    const int value = add_call(&entry, std::move(call), output);
    const int mask = zero ? mask_of_zeros(full, arguments[0]) : same ? masked.masks[0] : mask_after(masked);
    if (entry.kind->masks == MaskRule::removes)
      for (const int input : arguments) built_.graph.values[static_cast<std::size_t>(input)].mask = -1;
    built_.graph.values[static_cast<std::size_t>(value)].mask = mask;
    check_mask(masked.owner, mask, output);
    return value;
  }

  // ---- masks

  /// A call of a layer with the masks of its inputs.
  struct MaskedCall {
    std::string owner, path;
    const LayerKind& kind;
    std::vector<int> inputs, masks;
    int pairs = -1;  ///< attention's mask of pairs
  };

  /// Takes the masks, which come last, from a call's arguments.
  static std::vector<int> cut_masks(const CallDescription& call, std::vector<int>& arguments) {
    const auto first = arguments.end() - static_cast<std::ptrdiff_t>(call.mask_names.size());
    const std::vector<int> masks(first, arguments.end());
    arguments.erase(first, arguments.end());
    return masks;
  }

  static bool is_attention(const LayerKind& kind) {
    return kind.masks == MaskRule::attends || kind.masks == MaskRule::removes;
  }

  /// A mask that was given goes before that which the input has.
  void take_mask(const std::string& name, int mask, MaskedCall& call) const {
    const bool attends = is_attention(call.kind);
    const bool takes = call.kind.masks == MaskRule::pools || call.kind.masks == MaskRule::weighs;
    const std::size_t place = name == "value_mask" ? 1 : name == "key_mask" ? 2 : 0;
    const bool known = name == "mask" ? takes : attends;
    if (!known || place >= call.inputs.size())
      throw ConfigError(call.owner + " is called with " + name + ", which isn't supported for it");
    const Shape& of = spec_of(call.inputs[place]).shape;
    Shape rows(std::vector<std::int64_t>(of.sizes().begin(), of.sizes().end() - (of.rank() > 0 ? 1 : 0)));
    if (name == "attention_mask") rows = {of[0], spec_of(call.inputs[1]).shape[0]};
    if (const ValueSpec wanted{rows, DType::int32}; !(spec_of(mask) == wanted))
      throw ConfigError(call.owner + " is called with the " + name + " of " + describe(spec_of(mask)) +
                        "; it must be " + describe(wanted));
    (name == "attention_mask" ? call.pairs : call.masks[place]) = mask;
  }

  std::vector<int> masks_of(const std::vector<int>& values) const {
    std::vector<int> masks;
    for (const int value : values) masks.push_back(built_.graph.values[static_cast<std::size_t>(value)].mask);
    return masks;
  }

  /// The mask of a call's output, or -1.
  int mask_after(const MaskedCall& call) {
    const bool any = std::any_of(call.masks.begin(), call.masks.end(), [](int mask) { return mask >= 0; });
    if (!any) return -1;
    switch (call.kind.masks) {
      case MaskRule::drops:
      case MaskRule::pools:
        return -1;
      case MaskRule::passes:
      case MaskRule::weighs:
        return call.masks[0];
      case MaskRule::joins:
        return join_masks(call);
      case MaskRule::attends:
      case MaskRule::removes:
        if (call.masks.size() == 3 && call.masks[1] >= 0 && call.masks[2] >= 0 &&
            call.masks[1] != call.masks[2])
          throw ConfigError(call.owner +
                            " is called with a value and a key that have different masks; they "
                            "must have the same, or one of them none");
        return call.masks[0];
      case MaskRule::refuses:
        break;
    }
    throw ConfigError(call.owner +
                      " is called with a masked input (from mask_zero), which isn't supported; "
                      "layers that take masks are " +
                      kinds_that_take_masks());
  }

  static std::string kinds_that_take_masks() {
    std::string names;
    for (const LayerKind& kind : layer_kinds())
      if (kind.masks != MaskRule::drops && kind.masks != MaskRule::refuses)
        names += (names.empty() ? "" : ", ") + std::string(kind.class_name);
    return names;
  }

  int mask_of_zeros(const std::string& path, int ids) {
    return add_mask_call(path, make_not_equal(mask_common(), 0), {ids});
  }
  int join_masks(const MaskedCall& call) {
    if (std::any_of(call.masks.begin(), call.masks.end(), [](int mask) { return mask < 0; })) return -1;
    int joined = call.masks[0];
    for (const int mask : call.masks) {
      if (mask == joined) continue;
      if (!(spec_of(mask) == spec_of(joined)))
        throw ConfigError(call.owner + " joins masks of different shapes, which isn't supported");
      joined = add_mask_call(call.path, make_either(mask_common()), {joined, mask});
    }
    return joined;
  }
  int add_mask_call(const std::string& path, std::unique_ptr<Layer> layer, std::vector<int> inputs) {
    GraphCall call;
    call.layer = layer.get();
    call.path = path + "/mask";
    call.inputs = std::move(inputs);
    call.makes_mask = true;
    built_.graph.mask_layers.push_back(std::move(layer));
    const ValueSpec mask{spec_of(call.inputs[0]).shape, DType::int32};
    return add_call(nullptr, std::move(call), mask);
  }
  /// A mask has an entry for each row of its value, as far as Rankine follows Keras's masks.
  void check_mask(const std::string& owner, int mask, const ValueSpec& output) const {
    if (mask < 0 || spec_of(mask).shape.elements() == output.rows()) return;
    throw ConfigError(owner + " makes samples of shape " + output.shape.to_string() +
                      " with a mask of shape " + spec_of(mask).shape.to_string() + ", which isn't supported");
  }

  /// The first call decides; later ones must want the same.
  static void declare_variables(LayerEntry& entry, const std::string& full,
                                const std::vector<ValueSpec>& specs) {
    const std::string owner = "layer '" + full + "' (" + entry.class_name + ")";
    DeclarationList declared(owner);
    entry.layer->build(specs, declared);
    if (!entry.built) {
      entry.variables = std::move(declared.variables);
      entry.built = true;
      return;
    }
    for (std::size_t i = 0; i < entry.variables.size(); ++i) {
      const Shape& first = entry.variables[i].shape;
      const Shape& now = declared.variables.at(i).shape;
      if (!(first == now))
        throw ConfigError(owner + " was built by its first call with " + entry.variables[i].name + " " +
                          first.to_string() + ", but another call of it needs " + now.to_string());
    }
  }

  BuiltGraph built_;
  std::uint32_t number_ = 0;  ///< of the next call of a layer
};

}  // namespace

BuiltGraph build_graph(ModelTree& model) {
  return GraphBuilder().build(model);
}

}  // namespace rankine
