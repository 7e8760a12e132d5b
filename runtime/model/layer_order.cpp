#include "runtime/model/layer_order.hpp"

#include <algorithm>
#include <numeric>

#include "runtime/error.hpp"

namespace rankine {
namespace {

class LayerOrder {
 public:
  explicit LayerOrder(ModelTree& model) : model_(model), first_node_(model.layers.size() + 1, 0) {
    for (std::size_t i = 0; i < model.layers.size(); ++i)
      first_node_[i + 1] = first_node_[i] + static_cast<int>(model.layers[i].calls.size());
    const auto nodes = static_cast<std::size_t>(first_node_.back());
    places_.reserve(nodes);
    for (std::size_t i = 0; i < model.layers.size(); ++i)
      for (std::size_t n = 0; n < model.layers[i].calls.size(); ++n)
        places_.push_back({static_cast<int>(i), static_cast<int>(n)});
    state_.assign(nodes, State::unseen);
    node_depth_.assign(nodes, 0);
    met_.assign(model.layers.size(), -1);
    layer_depth_.assign(model.layers.size(), 0);
  }

  void run() {
    for (const Endpoint& output : model_.outputs) walk_from(node_of(output.tensor));
    check_reached();
    measure_depths();
    order_calls();
    reorder_layers();
  }

 private:
  enum class State : std::uint8_t { unseen, in_progress, done };

  int node_of(const TensorReference& reference) const {
    return first_node_[static_cast<std::size_t>(reference.layer)] + reference.node;
  }
  const CallDescription& call_of(int node) const {
    const CallPlace place = places_[static_cast<std::size_t>(node)];
    return model_.layers[static_cast<std::size_t>(place.layer)].calls[static_cast<std::size_t>(place.node)];
  }
  int layer_of(int node) const { return places_[static_cast<std::size_t>(node)].layer; }

  /// Depth first over the inputs, in Keras's order; `finished_` gets every node after those that it needs.
  /// With a stack of its own, since a chain of layers can be longer than the thread's stack.
  void walk_from(int output) {
    struct Step {
      int node;
      std::size_t next = 0;
    };
    std::vector<Step> stack;
    const auto enter = [&](int node) {
      State& state = state_[static_cast<std::size_t>(node)];
      if (state == State::done) return;
      if (state == State::in_progress)
        throw ConfigError("the graph of the model '" + model_.name + "' has a loop through layer '" +
                          model_.layers[static_cast<std::size_t>(layer_of(node))].name + "'");
      state = State::in_progress;
      int& met = met_[static_cast<std::size_t>(layer_of(node))];
      if (met < 0) met = next_met_++;
      stack.push_back({node});
    };
    enter(output);
    while (!stack.empty()) {
      Step& top = stack.back();
      const CallDescription& call = call_of(top.node);
      if (top.next < call.inputs.size()) {
        const int visit = call.visits[top.next++];
        enter(node_of(call.inputs[static_cast<std::size_t>(visit)]));
      } else {
        state_[static_cast<std::size_t>(top.node)] = State::done;
        finished_.push_back(top.node);
        stack.pop_back();
      }
    }
  }

  void check_reached() const {
    const std::string model = "the model '" + model_.name + "'";
    std::vector<bool> is_model_input(model_.layers.size(), false);
    for (const Endpoint& input : model_.inputs) {
      const auto layer = static_cast<std::size_t>(input.tensor.layer);
      if (!model_.layers[layer].is_input)
        throw ConfigError(model + " has layer '" + model_.layers[layer].name +
                          "' among its inputs, which isn't an InputLayer");
      if (is_model_input[layer]) throw ConfigError(model + " has the input '" + input.name + "' twice");
      is_model_input[layer] = true;
    }
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      const LayerEntry& entry = model_.layers[i];
      if (entry.is_input) {
        if (!is_model_input[i])
          throw ConfigError(model + " doesn't have its InputLayer '" + entry.name + "' among its inputs");
        continue;
      }
      if (met_[i] < 0) throw ConfigError(model + " has layer '" + entry.name + "', which leads to no output");
      for (std::size_t n = 0; n < entry.calls.size(); ++n)
        if (state_[static_cast<std::size_t>(first_node_[i]) + n] == State::unseen)
          throw ConfigError(model + " has layer '" + entry.name + "', whose call " + std::to_string(n) +
                            " leads to no output");
    }
  }

  /// From the outputs upwards. A layer called several times takes its largest depth, also for its later
  /// calls.
  void measure_depths() {
    for (auto node = finished_.rbegin(); node != finished_.rend(); ++node) {
      int& of_layer = layer_depth_[static_cast<std::size_t>(layer_of(*node))];
      int& of_node = node_depth_[static_cast<std::size_t>(*node)];
      of_node = of_layer = std::max(of_node, of_layer);
      for (const TensorReference& input : call_of(*node).inputs) {
        int& above = node_depth_[static_cast<std::size_t>(node_of(input))];
        above = std::max(above, of_node + 1);
      }
    }
  }

  void order_calls() {
    std::vector<int> nodes = finished_;
    std::stable_sort(nodes.begin(), nodes.end(), [&](int a, int b) {
      return node_depth_[static_cast<std::size_t>(a)] > node_depth_[static_cast<std::size_t>(b)];
    });
    for (const int node : nodes) model_.order.push_back(places_[static_cast<std::size_t>(node)]);
  }

  void reorder_layers() {
    // Inputs that nothing uses come last, before the layers of depth 0, in the order of the model's inputs.
    std::vector<int> input_rank(model_.layers.size(), 0);
    for (std::size_t i = 0; i < model_.inputs.size(); ++i)
      input_rank[static_cast<std::size_t>(model_.inputs[i].tensor.layer)] = static_cast<int>(i);
    std::vector<std::size_t> order(model_.layers.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      if (layer_depth_[a] != layer_depth_[b]) return layer_depth_[a] > layer_depth_[b];
      if (met_[a] != met_[b]) return met_[a] < met_[b];
      return input_rank[a] < input_rank[b];
    });

    std::vector<int> place(order.size());
    std::vector<LayerEntry> layers;
    for (const std::size_t from : order) {
      place[from] = static_cast<int>(layers.size());
      layers.push_back(std::move(model_.layers[from]));
    }
    model_.layers = std::move(layers);
    const auto move = [&](int& layer) { layer = place[static_cast<std::size_t>(layer)]; };
    for (LayerEntry& entry : model_.layers)
      for (CallDescription& call : entry.calls)
        for (TensorReference& input : call.inputs) move(input.layer);
    for (Endpoint& input : model_.inputs) move(input.tensor.layer);
    for (Endpoint& output : model_.outputs) move(output.tensor.layer);
    for (CallPlace& call : model_.order) move(call.layer);
  }

  ModelTree& model_;
  std::vector<int> first_node_;    ///< of each layer; a node is one call, numbered over all layers
  std::vector<CallPlace> places_;  ///< of each node
  std::vector<State> state_;
  std::vector<int> node_depth_;
  std::vector<int> layer_depth_;
  std::vector<int> met_;  ///< when the walk met each layer first, or -1
  int next_met_ = 0;
  std::vector<int> finished_;
};

}  // namespace

void order_layers(ModelTree& model) {
  LayerOrder(model).run();
}

}  // namespace rankine
