#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/error.hpp"
#include "runtime/model/known_words.hpp"
#include "runtime/model/loss_config.hpp"
#include "runtime/model/model.hpp"

namespace rankine {

using nlohmann::json;

namespace {

/// One entry of a `loss`, `loss_weights` or `metrics`, with the innermost dict key that leads to it.
struct Leaf {
  std::string key;
  const json* value;
};

bool is_leaf(const json& value) {
  return !value.is_array() && !(value.is_object() && !value.contains("class_name"));
}

/// Dicts come in the order of their sorted keys, as Keras flattens them.
void flatten(const json& value, const std::string& key, std::vector<Leaf>& leaves) {
  if (is_leaf(value)) {
    leaves.push_back({key, &value});
  } else if (value.is_array()) {
    for (const json& item : value) flatten(item, key, leaves);
  } else {
    for (const auto& [name, item] : value.items()) flatten(item, name, leaves);
  }
}

std::size_t output_index(const std::string& key, const char* what, std::span<const std::string> names) {
  // A dict with a model of one output can only mean that output, whatever it is called.
  if (names.size() == 1) return 0;
  const auto found = std::find(names.begin(), names.end(), key);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  throw ConfigError(std::string("compile config: ") + what + " names the output '" + key +
                    "', which the model doesn't have" + did_you_mean(key, {names.begin(), names.end()}) +
                    " Its outputs are " + listed(names));
}

/// One value an output, from one value for all, a (nested) list, or a (nested) dict by output name.
std::vector<const json*> by_output(const json& value, const char* what, std::span<const std::string> names) {
  if (is_leaf(value)) return std::vector<const json*>(names.size(), &value);
  std::vector<Leaf> leaves;
  flatten(value, "", leaves);
  if (leaves.size() != names.size())
    throw ConfigError(std::string("compile config: ") + what + " has " + std::to_string(leaves.size()) +
                      " entries but the model has " + std::to_string(names.size()) + " outputs (" +
                      listed(names) + "); each needs exactly one");
  std::vector<const json*> result(names.size());
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const std::size_t output = leaves[i].key.empty() ? i : output_index(leaves[i].key, what, names);
    if (result[output] != nullptr)
      throw ConfigError(std::string("compile config: ") + what + " has two entries for the output '" +
                        names[output] + "'");
    result[output] = leaves[i].value;
  }
  return result;
}

/// The metrics of each output: a flat list for the only output, else a list with one entry an output or a
/// dict by output name.
std::vector<std::vector<const json*>> metrics_by_output(const json& metrics, const std::string& what,
                                                        std::span<const std::string> names) {
  std::vector<std::vector<const json*>> result(names.size());
  const auto add = [&](std::size_t output, const json& value) {
    std::vector<Leaf> leaves;
    flatten(value, "", leaves);
    for (const Leaf& leaf : leaves) {
      if (!leaf.value->is_null()) result[output].push_back(leaf.value);
    }
  };
  if (names.size() == 1) {
    add(0, metrics);
  } else if (metrics.is_array()) {
    if (!metrics.empty() && metrics.size() != names.size())
      throw ConfigError("compile config: " + what + " is a list of " + std::to_string(metrics.size()) +
                        " entries; with several outputs it needs one an output (" + listed(names) +
                        ") or a dict by output name");
    for (std::size_t i = 0; i < metrics.size(); ++i) add(i, metrics[i]);
  } else if (metrics.is_object() && !metrics.contains("class_name")) {
    for (const auto& [name, value] : metrics.items()) add(output_index(name, what.c_str(), names), value);
  } else if (!metrics.is_null()) {
    throw ConfigError("compile config: " + what + " must be a list or a dict by output name");
  }
  return result;
}

double weight_of(const json& value, const std::string& output) {
  if (value.is_null()) return 1.0;
  if (value.is_number()) return value.get<double>();
  throw ConfigError("compile config: loss_weights of the output '" + output +
                    "' isn't a number: " + value.dump());
}

/// Keys as in Keras's logs, which has the weighted metrics of all outputs last: a name that is taken gets a
/// number, or first "weighted_".
void name_metrics(std::vector<OutputLoss>& losses) {
  std::map<std::string, int> taken;
  const auto name_all = [&](bool is_weighted) {
    for (OutputLoss& loss : losses) {
      const std::string output = losses.size() > 1 ? loss.output + "_" : "";
      for (LoggedMetric& logged : loss.metrics) {
        if (logged.is_weighted != is_weighted) continue;
        logged.key = output + std::string(logged.metric->name());
        if (is_weighted && taken.contains(logged.key))
          logged.key = output + "weighted_" + std::string(logged.metric->name());
        const int before = taken[logged.key]++;
        if (before > 0) logged.key += "_" + std::to_string(before);
      }
    }
  };
  name_all(false);
  name_all(true);
}

const json& entry(const json& config, const char* key) {
  static const json k_null;
  const auto found = config.find(key);
  return found == config.end() ? k_null : *found;
}

}  // namespace

std::vector<OutputLoss> losses_from_compile_config(const json& compile_config,
                                                   std::span<const std::string> output_names,
                                                   std::span<const ValueSpec> predictions) {
  if (!compile_config.is_object()) throw ConfigError("the compile config isn't a JSON object");
  const json& loss = entry(compile_config, "loss");
  if (loss.is_null())
    throw ConfigError(
        "compile config: it has no loss; compile the model with one, or name it in the job file");
  const auto losses = by_output(loss, "loss", output_names);
  const auto weights = by_output(entry(compile_config, "loss_weights"), "loss_weights", output_names);
  const auto metrics_of = [&](const char* what) {
    return metrics_by_output(entry(compile_config, what), what, output_names);
  };
  const auto metrics = metrics_of("metrics"), weighted_metrics = metrics_of("weighted_metrics");

  std::vector<OutputLoss> result;
  for (std::size_t i = 0; i < output_names.size(); ++i) {
    const std::string of = " of the output '" + output_names[i] + "'";
    if (losses[i]->is_null()) throw ConfigError("compile config: the loss" + of + " is null; it needs one");
    OutputLoss output;
    output.output = output_names[i];
    output.loss = loss_from_config(*losses[i], "compile config: the loss" + of);
    output.weight = weight_of(*weights[i], output_names[i]);
    const ValueSpec target = output.loss->target(predictions[i], output_names[i]);
    const auto add = [&](const std::vector<const json*>& configs, const std::string& what, bool is_weighted) {
      for (const json* config : configs)
        output.metrics.push_back(
            {metric_from_config(*config, predictions[i], target, "compile config: " + what + of), "",
             is_weighted});
    };
    add(metrics[i], "a metric", false);
    add(weighted_metrics[i], "a weighted metric", true);
    result.push_back(std::move(output));
  }
  name_metrics(result);
  return result;
}

std::vector<OutputLoss> compiled_losses(const Model& model) {
  return losses_from_compile_config(json::parse(model.compile_config()), model.output_names(),
                                    model.output_specs());
}

}  // namespace rankine
