#include <algorithm>
#include <array>
#include <cstdio>

#include "checkpoint/describe.hpp"

namespace rankine {
namespace {

/// "32,357"
std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t i = text.size(); i > 3;) text.insert(i -= 3, ",");
  return text;
}

std::string bytes_text(std::int64_t bytes) {
  static constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  auto size = static_cast<double>(bytes);
  while (size >= 1024 && unit + 1 < units.size()) {
    size /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", size, units[unit]);
  return text.data();
}

/// Rows of equal length, the first of them the headings; columns in `right` are set flush right.
class Table {
 public:
  Table(std::vector<std::string> headings, std::vector<bool> right) : right_(std::move(right)) {
    rows_.push_back(std::move(headings));
  }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  std::string text() const {
    std::vector<std::size_t> widths(right_.size(), 0);
    for (const auto& row : rows_)
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    std::string result = line(rows_.front(), widths);
    std::size_t total = 2 * (widths.size() - 1);
    for (const std::size_t width : widths) total += width;
    result += std::string(total, '-') + "\n";
    for (std::size_t i = 1; i < rows_.size(); ++i) result += line(rows_[i], widths);
    return result;
  }

 private:
  std::string line(const std::vector<std::string>& row, const std::vector<std::size_t>& widths) const {
    std::string text;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - row[i].size(), ' ');
      text += (i == 0 ? "" : "  ") + (right_[i] ? space + row[i] : row[i] + space);
    }
    return text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  }
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

std::string heading(const KerasDescription& d) {
  std::string text = d.path + ": " + d.kind;
  if (!d.model_name.empty()) text += " \"" + d.model_name + "\"";
  if (!d.keras_version.empty()) text += ", format of Keras " + d.keras_version;
  if (!d.date_saved.empty()) text += ", saved " + d.date_saved;
  return text + "\n";
}

std::string labelled(std::string label, const std::string& text) {
  if (text.empty()) return "";
  label.resize(11, ' ');
  return label + text + "\n";
}

std::string ports_text(const std::vector<PortRow>& ports) {
  std::string text;
  for (const PortRow& port : ports)
    text += (text.empty() ? "" : ", ") + port.name + " " + port.dtype + " " + port.shape.to_string();
  return text;
}

std::string layers_text(const KerasDescription& d) {
  if (d.layers.empty()) return "";
  Table table({"layer", "class", "output of a sample", "parameters"}, {false, false, false, true});
  for (const LayerRow& layer : d.layers) {
    const std::string calls = layer.calls > 1 ? " (" + std::to_string(layer.calls) + " calls)" : "";
    table.add({layer.path + calls, layer.class_name, layer.output.to_string(), grouped(layer.parameters)});
  }
  return "\n" + table.text();
}

std::string variables_text(const KerasDescription& d) {
  if (d.variables.empty()) return "";
  Table table({"variable", "place in the weights file", "shape", "dtype", "bytes"},
              {false, false, false, false, true});
  for (const VariableRow& row : d.variables) {
    const std::string frozen = row.trainable ? "" : " (not trainable)";
    table.add({row.path + frozen, row.structural_path, row.shape.to_string(), row.dtype, grouped(row.bytes)});
  }
  return "\n" + table.text();
}

std::string totals_text(const KerasDescription& d) {
  std::string text = grouped(d.parameters) + " parameters in " + std::to_string(d.variables.size()) +
                     " variables, " + bytes_text(d.bytes);
  if (d.trainable_parameters != d.parameters)
    text += "; " + grouped(d.trainable_parameters) + " are trainable";
  return labelled("total", text);
}

std::string state_text(const KerasDescription& d) {
  if (d.state_tensors == 0) return "";
  std::string text = std::to_string(d.state_tensors) + " tensors, " + bytes_text(d.state_bytes);
  if (d.iteration) text += ", iteration " + std::to_string(*d.iteration);
  return text;
}

}  // namespace

std::string to_text(const KerasDescription& d) {
  std::string text = heading(d) + labelled("inputs", ports_text(d.inputs)) +
                     labelled("outputs", ports_text(d.outputs)) + layers_text(d) + variables_text(d) + "\n" +
                     totals_text(d);
  text += labelled("optimizer", d.optimizer) + labelled("state", state_text(d)) + labelled("loss", d.loss) +
          labelled("metrics", d.metrics);
  if (!d.refusal.empty()) text += "\nThis model can't be trained here: " + d.refusal + "\n";
  return text;
}

}  // namespace rankine
