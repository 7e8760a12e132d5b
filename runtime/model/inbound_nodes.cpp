#include "runtime/model/inbound_nodes.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "runtime/error.hpp"
#include "runtime/model/config_reader.hpp"

namespace rankine {

using nlohmann::json;

bool is_reference(const json& value) {
  return value.is_array() && value.size() >= 3 && value[0].is_string() && value[1].is_number_integer() &&
         value[2].is_number_integer();
}

TensorReference reference_from_config(const json& triple, const LayersByName& layers,
                                      const std::string& owner) {
  if (!is_reference(triple))
    throw ConfigError(owner + " refers to a tensor by something else than [layer, node, tensor]");
  const auto name = triple[0].get<std::string>();
  const auto found = layers.find(name);
  if (found == layers.end())
    throw ConfigError(owner + " refers to a layer '" + name + "' that the model doesn't have");
  const auto number = [&](const json& value) {
    const auto n = value.get<std::int64_t>();
    if (n < 0 || n > std::numeric_limits<int>::max())
      throw ConfigError(owner + " refers to call or tensor " + std::to_string(n) + " of layer '" + name +
                        "'");
    return static_cast<int>(n);
  };
  return {found->second, number(triple[1]), number(triple[2])};
}

namespace {

/// Nothing was given: null, or null for each of several tensors.
bool is_absent(const json& value) {
  return value.is_null() ||
         (value.is_structured() && !value.empty() && std::all_of(value.begin(), value.end(), is_absent));
}

class CallReader {
 public:
  CallReader(const LayersByName& layers, const std::string& owner) : layers_(layers), owner_(owner) {}

  CallDescription read(const json& node) {
    if (node.is_array()) return read_old(node);
    if (!node.is_object() || !node.contains("args") || !node["args"].is_array())
      refuse("has an inbound node without a list of args");
    json args = node["args"];
    while (!args.empty() && args.back().is_null()) args.erase(args.size() - 1);
    std::size_t position = 0;
    for (; position < args.size(); ++position)
      add_tensors(args[position], "argument " + std::to_string(position), "");
    if (node.contains("kwargs")) read_keywords(node["kwargs"], position);
    if (call_.inputs.empty()) refuse("has a call without input tensors");
    return std::move(call_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { throw ConfigError(owner_ + " " + what); }

  /// [["name", 0, 0, {}], …], and ["name", 0, 0, {}] for one input.
  CallDescription read_old(const json& node) {
    const json inputs = is_reference(node) ? json::array({node}) : node;
    for (const json& input : inputs) {
      add(reference_from_config(input, layers_, owner_), "");
      if (input.size() > 3) read_keywords(input[3], inputs.size());
    }
    if (call_.inputs.empty()) refuse("has a call without input tensors");
    return std::move(call_);
  }

  void add(TensorReference reference, const std::string& key) {
    call_.visits.push_back(static_cast<int>(call_.inputs.size()));
    call_.inputs.push_back(reference);
    call_.keys.push_back(key);
  }

  /// A tensor, or a list or dict of tensors. nlohmann's objects are sorted by key, as Keras walks over a
  /// dict.
  void add_tensors(const json& value, const std::string& what, const std::string& key) {
    if (value.is_object() && value.contains("class_name")) {
      if (value["class_name"] != "__keras_tensor__" || !value.contains("config") ||
          !value["config"].is_object() || !value["config"].contains("keras_history"))
        refuse("is called with a constant or an object as " + what +
               "; only tensors of the model are supported there");
      add(reference_from_config(value["config"]["keras_history"], layers_, owner_), key);
    } else if (value.is_array()) {
      for (const json& element : value) add_tensors(element, what, "");
    } else if (value.is_object()) {
      for (const auto& [name, element] : value.items()) add_tensors(element, what, name);
    } else {
      refuse("is called with " + value.dump().substr(0, 40) + " as " + what +
             "; only tensors of the model are supported there");
    }
  }

  void read_keywords(const json& keywords, std::size_t position) {
    if (keywords.is_null()) return;
    if (!keywords.is_object()) refuse("has kwargs that aren't an object");
    const std::vector<std::string> tensors = read_settings(keywords);
    add_keyword_tensors(keywords, tensors, position);
  }

  /// Takes the arguments that aren't tensors; gives the names of the others.
  std::vector<std::string> read_settings(const json& keywords) {
    std::vector<std::string> rest;
    for (const auto& [name, value] : keywords.items()) {
      if (is_absent(value)) continue;
      if (name == "use_causal_mask" && value.is_boolean()) {
        call_.arguments.use_causal_mask = value.get<bool>();
      } else if (name == "reverse" && value.is_boolean()) {
        call_.arguments.reverse = value.get<bool>();
      } else if (name == "training" && value.is_boolean()) {
        continue;  // Keras stores false with every call; what the caller of the model says goes before it
      } else if (name == "return_attention_scores" && value == false) {
        continue;
      } else {
        rest.push_back(name);
      }
    }
    return rest;
  }

  /// Tensors by the name of their parameter: `inputs` of most layers; query, value and key of attention,
  /// which Keras declares in this order.
  void add_keyword_tensors(const json& keywords, std::vector<std::string> names, std::size_t position) {
    static constexpr std::array<std::string_view, 3> k_attention = {"query", "value", "key"};
    const std::size_t before = call_.inputs.size();
    for (; !names.empty() && position < k_attention.size(); ++position) {
      const bool is_inputs = position == 0 && keywords.contains("inputs");
      const std::string name = is_inputs ? "inputs" : std::string(k_attention[position]);
      if (std::erase(names, name) == 0) break;
      add_tensors(keywords[name], "'" + name + "'", "");
      argument_names_.push_back(name);
    }
    add_masks(keywords, names);
    if (!names.empty())
      refuse("is called with the argument " + names[0].substr(0, 64) +
             ", which isn't supported; supported are use_causal_mask, reverse, training, and the tensors "
             "query, value, key, mask, attention_mask, value_mask and key_mask");
    sort_visits(before);
  }

  void add_masks(const json& keywords, std::vector<std::string>& names) {
    for (const char* name : {"mask", "attention_mask", "value_mask", "key_mask"}) {
      if (std::erase(names, name) == 0) continue;
      const std::size_t before = call_.inputs.size();
      add_tensors(keywords[name], "'" + std::string(name) + "'", "");
      call_.mask_names.insert(call_.mask_names.end(), call_.inputs.size() - before, name);
      argument_names_.emplace_back(name);
    }
  }

  /// Keras walks over keyword arguments by name.
  void sort_visits(std::size_t before) {
    std::map<std::string, int> by_name;
    for (std::size_t i = 0; i < argument_names_.size(); ++i)
      by_name[argument_names_[i]] = static_cast<int>(before + i);
    if (call_.visits.size() != before + argument_names_.size()) return;  // one of them was a list
    std::size_t at = before;
    for (const auto& [name, input] : by_name) call_.visits[at++] = input;
  }

  const LayersByName& layers_;
  const std::string& owner_;
  CallDescription call_;
  std::vector<std::string> argument_names_;
};

}  // namespace

std::vector<CallDescription> calls_from_config(const json& inbound_nodes, const LayersByName& layers,
                                               const std::string& owner) {
  if (!inbound_nodes.is_array()) throw ConfigError(owner + " has inbound_nodes that aren't a list");
  std::vector<CallDescription> calls;
  for (const json& node : inbound_nodes) calls.push_back(CallReader(layers, owner).read(node));
  return calls;
}

}  // namespace rankine
