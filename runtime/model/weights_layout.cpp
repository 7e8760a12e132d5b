#include "runtime/model/weights_layout.hpp"

#include <algorithm>

#include "runtime/error.hpp"
#include "runtime/model/naming.hpp"

namespace rankine {
namespace {

class LayoutWalk {
 public:
  explicit LayoutWalk(const ModelTree& root) : trainable_(root.trainable) {
    layout_.groups.push_back({"", root.name});
  }

  /// `structural` is "" or the model's own place with a "/" at the end.
  void model(ModelTree& model, const std::string& structural) {
    NameCounter counter;
    // Keras names the variables of a Sequential's layers by it, but not those of a Functional's.
    const std::string shown = model.sequential ? model.name + "/" : "";
    for (LayerEntry& entry : model.layers) {
      // Sequential.layers is without the InputLayer.
      if (entry.is_input && model.sequential) continue;
      if (entry.is_operation) continue;  // nor is an operation among a Functional's layers
      const std::string place = structural + "layers/" + counter.next(group_name(entry));
      layout_.groups.push_back({place, entry.name});
      if (entry.model) this->model(*entry.model, place + "/");
      if (entry.layer) layer(entry, place, shown + entry.name);
    }
  }

  WeightsLayout take() { return std::move(layout_); }

 private:
  static std::string group_name(const LayerEntry& entry) {
    if (entry.model) return entry.model->sequential ? "sequential" : "functional";
    const bool renamed = entry.kind != nullptr && !entry.kind->python_class.empty();
    return to_snake_case(renamed ? entry.kind->python_class : entry.class_name);
  }

  void layer(LayerEntry& entry, const std::string& place, const std::string& shown) {
    // Own variables come before those of sublayers, which come in the order of their creation.
    std::vector<VariableBuilder::Group> groups = {{}};
    for (const DeclaredVariable& variable : entry.variables)
      if (std::none_of(groups.begin(), groups.end(),
                       [&](const auto& group) { return group.attribute == variable.group.attribute; }))
        groups.push_back(variable.group);
    for (const auto& group : groups) {
      const bool own = group.attribute.empty();
      if (!own) layout_.groups.push_back({place + "/" + group.attribute, group.name});
      add_group(entry, group, own ? place : place + "/" + group.attribute,
                own ? shown : shown + "/" + group.name);
    }
    for (const auto& [attribute, name] : entry.layer->empty_groups())
      layout_.groups.push_back({place + "/" + attribute, unnamed_.next(name)});
  }

  /// Trainable variables before the others, each in the order of their declaration.
  void add_group(LayerEntry& entry, const VariableBuilder::Group& group, const std::string& place,
                 const std::string& shown) {
    int index = 0;
    for (const bool trainable : {true, false})
      for (DeclaredVariable& declared : entry.variables)
        if (declared.group.attribute == group.attribute && declared.trainable == trainable)
          add(declared, entry.layer->common().dtype, place + "/vars/" + std::to_string(index++),
              shown + "/" + declared.name);
  }

  void add(DeclaredVariable& declared, DType dtype, std::string structural, std::string shown) {
    constexpr std::int64_t k_most_elements = std::int64_t{1} << 40;
    elements_ += declared.shape.elements();
    if (elements_ > k_most_elements)
      throw ConfigError("the model's variables have more than 2^40 elements, from " + shown + " on");
    declared.ordinal = static_cast<int>(layout_.variables.size());
    Variable variable;
    variable.path = std::move(shown);
    variable.structural_path = std::move(structural);
    variable.ordinal = declared.ordinal;
    variable.shape = declared.shape;
    variable.dtype = dtype;
    variable.trainable = declared.trainable && trainable_;
    variable.rules = declared.rules;
    variable.fans = declared.fans;
    layout_.variables.push_back(std::move(variable));
  }

  WeightsLayout layout_;
  NameCounter unnamed_;  // Keras names sublayers without weights by itself, counted over the whole model
  bool trainable_;
  std::int64_t elements_ = 0;
};

}  // namespace

WeightsLayout lay_out_weights(ModelTree& model) {
  LayoutWalk walk(model);
  walk.model(model, "");
  return walk.take();
}

}  // namespace rankine
