#include "checkpoint/describe.hpp"

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "checkpoint/keras_archive.hpp"
#include "checkpoint/weights_file.hpp"
#include "runtime/error.hpp"
#include "runtime/model/model.hpp"

namespace rankine {
namespace {

using json = nlohmann::ordered_json;  // hyper-parameters in Keras's order

std::string value_text(const json& value);

/// What a reader gains nothing from: names, what is off, and what every config has.
bool is_idle(const json& config, const std::string& key, const json& value) {
  const bool averages = config.value("use_ema", false);
  return value.is_null() || value == false || key == "name" || key == "dtype" ||
         (key == "reduction" && value == "sum_over_batch_size") || (key == "ema_momentum" && !averages);
}

/// Keras's way to write an object down: Class(key=value, …).
std::string object_text(const json& object) {
  std::string text;
  const json& config = object.value("config", json::object());
  for (const auto& [key, value] : config.items())
    if (!is_idle(config, key, value)) text += (text.empty() ? "" : ", ") + key + "=" + value_text(value);
  return object["class_name"].get<std::string>() + "(" + text + ")";
}

std::string list_text(const json& list) {
  std::string text;
  for (const json& value : list) text += (text.empty() ? "" : ", ") + value_text(value);
  return "[" + text + "]";
}

std::string value_text(const json& value) {
  if (value.is_object() && value.contains("class_name") && value["class_name"].is_string())
    return object_text(value);
  if (value.is_object()) {
    std::string text;
    for (const auto& [key, entry] : value.items())
      text += (text.empty() ? "" : ", ") + key + ": " + value_text(entry);
    return "{" + text + "}";
  }
  if (value.is_array()) return list_text(value);
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (!value.is_number_float()) return value.dump();
  // Hyper-parameters come back from float32 variables: 0.05 as 0.05000000074505806.
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.7g", value.get<double>());
  return text.data();
}

std::string text_at(const json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_string()
             ? object[key].get<std::string>()
             : "";
}

void describe_metadata(const std::string& metadata, KerasDescription& result) {
  const json facts = json::parse(metadata, nullptr, false);
  result.keras_version = text_at(facts, "keras_version");
  result.date_saved = text_at(facts, "date_saved");
}

void describe_compile_config(const json& config, KerasDescription& result) {
  const auto text = [&](const char* key) {
    return config.contains(key) && !config[key].is_null() ? value_text(config[key]) : std::string();
  };
  result.optimizer = text("optimizer");
  result.loss = text("loss");
  if (!result.loss.empty() && !text("loss_weights").empty())
    result.loss += ", weights " + text("loss_weights");
  result.metrics = text("metrics");
}

std::vector<PortRow> ports(const std::vector<std::string>& names, const std::vector<int>& values,
                           const Graph& graph) {
  std::vector<PortRow> rows;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const ValueSpec& spec = graph.values[static_cast<std::size_t>(values[i])].spec;
    rows.push_back({names[i], spec.shape, std::string(name_of(spec.dtype))});
  }
  return rows;
}

void describe_layers(const Model& model, KerasDescription& result) {
  const Graph& graph = model.graph();
  result.inputs = ports(model.input_names(), graph.inputs, graph);
  result.outputs = ports(model.output_names(), graph.outputs, graph);
  std::map<std::string, std::size_t> place;
  for (const GraphCall& call : graph.calls) {
    const auto [row, is_new] = place.emplace(call.path, result.layers.size());
    if (is_new) {
      const Shape& output = graph.values[static_cast<std::size_t>(call.output)].spec.shape;
      result.layers.push_back({call.path, call.layer->common().class_name, output, 0, 0});
      for (const int v : call.variables)
        result.layers.back().parameters += model.variables()[static_cast<std::size_t>(v)].shape.elements();
    }
    ++result.layers[row->second].calls;
  }
}

void describe_variables(const Model& model, KerasDescription& result) {
  for (const Variable& v : model.variables()) {
    const std::int64_t bytes = v.shape.elements() * static_cast<std::int64_t>(size_of(v.dtype));
    result.variables.push_back(
        {v.path, v.structural_path, v.shape, std::string(name_of(v.dtype)), bytes, v.trainable});
  }
}

void describe_model(const std::string& config_text, KerasDescription& result) {
  const json config = json::parse(config_text, nullptr, false);
  if (!config.is_object()) throw CheckpointError(result.path + ": the model's config isn't a JSON object");
  result.model_name = text_at(config.value("config", json::object()), "name");
  const json compile_config = config.value("compile_config", json::object());
  if (compile_config.is_object()) describe_compile_config(compile_config, result);
  try {
    const Model model = Model::from_config(config_text);
    describe_layers(model, result);
    describe_variables(model, result);
  } catch (const ConfigError& error) {
    result.refusal = error.what();
  }
}

std::string owner_of(const std::string& structural_path, const WeightsFile& file) {
  const std::size_t vars = structural_path.rfind("vars/");
  const std::string group = structural_path.substr(0, vars == std::string::npos || vars == 0 ? 0 : vars - 1);
  return file.group_name(group);
}

/// Without a model the file's own arrays are the variables; with one they must be there, and `read_weights`
/// says so.
void describe_weights(const WeightsFile& file, KerasDescription& result) {
  const bool without_model = result.variables.empty();
  for (const auto& [path, array] : file.arrays()) {
    if (path.starts_with("optimizer/")) {
      ++result.state_tensors;
      result.state_bytes += static_cast<std::int64_t>(array.bytes);
    } else if (without_model) {
      result.variables.push_back({owner_of(path, file), path, array.shape, array.dtype,
                                  static_cast<std::int64_t>(array.bytes), true});
    }
  }
  if (result.model_name.empty()) result.model_name = file.group_name("");
  if (result.optimizer.empty()) result.optimizer = file.group_name("optimizer");
  const auto counter = file.arrays().find("optimizer/vars/0");
  if (counter != file.arrays().end() && counter->second.shape == Shape{} &&
      counter->second.dtype.starts_with("int")) {
    std::int32_t iteration = 0;
    file.read("optimizer/vars/0", {&iteration, DType::int32, {}});
    result.iteration = iteration;
  }
}

bool is_config(const std::string& path, std::string& text) {
  if (!path.ends_with(".json")) return false;
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;  // The reader of sharded weights says why.
  text.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  const json parsed = json::parse(text, nullptr, false);
  return parsed.is_object() && parsed.contains("class_name");
}

}  // namespace

KerasDescription describe_keras_file(const std::string& path) {
  KerasDescription result;
  result.path = path;
  std::string config;
  if (is_config(path, config)) {
    result.kind = "Keras config";
    describe_model(config, result);
  } else if (path.ends_with(".keras") || KerasArchive::looks_like(path)) {
    result.kind = "Keras model";
    const KerasArchive archive = KerasArchive::open(path);
    describe_metadata(archive.metadata(), result);
    describe_model(archive.config(), result);
    describe_weights(archive.weights(), result);
  } else {
    result.kind = "Keras weights";
    describe_weights(WeightsFile::open(path), result);
  }
  for (const VariableRow& row : result.variables) {
    const std::int64_t elements = row.shape.elements();
    result.parameters += elements;
    result.trainable_parameters += row.trainable ? elements : 0;
    result.bytes += row.bytes;
  }
  return result;
}

}  // namespace rankine
