#include "checkpoint/weights_reader.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/error.hpp"

namespace rankine {
namespace {

constexpr std::size_t k_most_lines = 40;
constexpr const char* k_optimizer = "optimizer/";
constexpr const char* k_iteration = "optimizer/vars/0";
constexpr const char* k_learning_rate = "optimizer/vars/1";

/// A tensor that is to be filled.
struct Wanted {
  std::string structural_path;
  std::string path;
  Tensor value;
};

bool is_float_name(const std::string& dtype) {
  return dtype.starts_with("float") || dtype == "bfloat16";
}

bool fits(const std::string& stored, DType wanted, FloatPolicy policy) {
  if (stored == name_of(wanted)) return true;
  // Keras on TensorFlow counts in int64; `WeightsFile::read` checks the value.
  if (wanted == DType::int32) return stored == "int64";
  return policy == FloatPolicy::convert && is_float_name(stored);
}

std::string array_text(const std::string& dtype, const Shape& shape) {
  return dtype + " " + shape.to_string();
}

/// What keeps this array from filling this tensor; nothing if it fits.
std::optional<std::string> difference(const Wanted& wanted, const StoredArray& stored, FloatPolicy policy) {
  const std::string both = "the file has " + array_text(stored.dtype, stored.shape) + ", the model wants " +
                           array_text(std::string(name_of(wanted.value.dtype)), wanted.value.shape);
  if (stored.shape != wanted.value.shape) return "other shape: " + both;
  if (!fits(stored.dtype, wanted.value.dtype, policy)) return "other dtype: " + both;
  return std::nullopt;
}

/// All differences between what is wanted and what the file holds under `belongs`.
template <class Belongs>
std::vector<std::string> differences(const WeightsFile& file, const std::vector<Wanted>& wanted,
                                     FloatPolicy policy, Belongs belongs) {
  std::vector<std::string> lines;
  std::map<std::string, const StoredArray*> left;
  for (const auto& [path, array] : file.arrays())
    if (belongs(path)) left.emplace(path, &array);
  for (const Wanted& tensor : wanted) {
    const std::string name = tensor.structural_path + " (" + tensor.path + ")";
    const auto stored = left.find(tensor.structural_path);
    if (stored == left.end()) {
      lines.push_back("missing in the file: " + name + " " +
                      array_text(std::string(name_of(tensor.value.dtype)), tensor.value.shape));
      continue;
    }
    if (const auto text = difference(tensor, *stored->second, policy)) lines.push_back(name + ": " + *text);
    left.erase(stored);
  }
  for (const auto& [path, array] : file.arrays())
    if (left.contains(path))
      lines.push_back("unknown to the model: " + path + " " + array_text(array.dtype, array.shape));
  return lines;
}

[[noreturn]] void refuse(const std::string& what, const std::vector<std::string>& lines,
                         const std::string& advice) {
  std::string text =
      what + "; " + std::to_string(lines.size()) + (lines.size() == 1 ? " difference:" : " differences:");
  for (std::size_t i = 0; i < lines.size() && i < k_most_lines; ++i) text += "\n  " + lines[i];
  if (lines.size() > k_most_lines) text += "\n  and " + std::to_string(lines.size() - k_most_lines) + " more";
  throw CheckpointError(text + "\n" + advice);
}

bool is_optimizers(const std::string& path) {
  return path.starts_with(k_optimizer);
}

/// Keras saves an optimizer that has never stepped as its counter alone, with the rate if there is no
/// schedule.
bool is_untrained(const WeightsFile& file, std::size_t stored, std::size_t wanted) {
  if (stored >= wanted || stored > 2) return false;
  const auto& arrays = file.arrays();
  const auto counter = arrays.find(k_iteration);
  if (counter == arrays.end() || counter->second.shape != Shape{}) return false;
  if (stored == 2 && !arrays.contains(k_learning_rate)) return false;
  std::int32_t iteration = -1;
  file.read(k_iteration, {&iteration, DType::int32, {}});
  return iteration == 0;
}

void check_optimizer_name(const WeightsFile& file, const StateDict& state) {
  const std::string name = file.group_name("optimizer");
  const std::string ours = state.front().path.substr(0, state.front().path.find('/'));
  if (name.empty() || name == ours || state.front().path == ours) return;
  throw CheckpointError(file.name() + " holds the state of the optimizer " + name +
                        ", but this run's optimizer is " + ours +
                        ". Train with that optimizer, or start from the weights alone");
}

}  // namespace

void read_weights(const WeightsFile& file, std::span<Variable> variables, FloatPolicy policy) {
  std::vector<Wanted> wanted;
  for (const Variable& v : variables) wanted.push_back({v.structural_path, v.path, v.value});
  const auto lines =
      differences(file, wanted, policy, [](const std::string& path) { return !is_optimizers(path); });
  if (!lines.empty())
    refuse(file.name() + " doesn't hold the weights of this model", lines,
           "Nothing was loaded. Give the model that these weights were saved from, or its own weights.");
  for (const Wanted& tensor : wanted) file.read(tensor.structural_path, tensor.value);
}

OptimizerRead read_optimizer_state(const WeightsFile& file, StateDict& state, FloatPolicy policy) {
  std::size_t stored = 0;
  for (const auto& entry : file.arrays()) stored += is_optimizers(entry.first) ? 1 : 0;
  if (stored == 0 || state.empty()) return OptimizerRead::absent;
  if (is_untrained(file, stored, state.size())) return OptimizerRead::untrained;
  check_optimizer_name(file, state);
  std::vector<Wanted> wanted;
  for (const StateTensor& tensor : state)
    wanted.push_back({tensor.structural_path, tensor.path, tensor.local});
  const auto lines = differences(file, wanted, policy, is_optimizers);
  if (!lines.empty())
    refuse(file.name() + " holds " + std::to_string(stored) +
               " tensors of optimizer state that don't fit the " + std::to_string(state.size()) +
               " of this run's optimizer",
           lines,
           "Nothing was loaded. Train with the settings that the file was saved with, or start from the "
           "weights alone.");
  for (const Wanted& tensor : wanted) file.read(tensor.structural_path, tensor.value);
  return OptimizerRead::complete;
}

}  // namespace rankine
