#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/model/layer.hpp"

/// A tensor that owns its elements, in either floating type. For tests.
struct Array {
  rankine::Shape shape;
  rankine::DType dtype = rankine::DType::float64;
  std::vector<double> floats;
  std::vector<float> singles;
  std::vector<std::int32_t> integers;

  rankine::Tensor tensor();
  /// Floating elements as double.
  std::vector<double> values() const;
  /// Samples [begin, end).
  Array rows(std::int64_t begin, std::int64_t end) const;
  static Array of(rankine::Shape shape, rankine::DType dtype, const std::vector<double>& values = {});
  /// {"shape", "dtype", "data"} of what Keras was given: float32 values, written with 9 digits. What isn't
  /// int32 becomes `floating`.
  static Array from_json(const nlohmann::json& value, rankine::DType floating);
};

/// What a layer declared while it was built.
struct DeclaredVariable {
  std::string group, group_name, name;
  rankine::Shape shape;
  rankine::Fans fans;
};

/// One layer with its weights and one call of it, run as the executor runs it.
class LayerRun {
 public:
  LayerRun(const std::string& class_name, const nlohmann::json& config, rankine::DType dtype);
  LayerRun(std::unique_ptr<rankine::Layer> layer, rankine::DType dtype)
      : layer_(std::move(layer)), dtype_(dtype) {}

  /// Builds for these inputs. With `same_input` the first one is given in every place.
  void set_inputs(std::vector<Array> inputs, bool same_input = false);
  void set_weights(std::vector<Array> weights) { weights_ = std::move(weights); }

  struct Result {
    Array output;
    std::vector<Array> input_gradients, weight_gradients;
  };
  /// Forward, and backward if `output_gradient` isn't empty, of samples [begin, end). Memory that is only
  /// written by a layer starts as NaN.
  Result run(rankine::Backend& backend, std::int64_t begin, std::int64_t end, const Array& output_gradient);

  const rankine::Layer& layer() const { return *layer_; }
  const std::vector<DeclaredVariable>& variables() const { return variables_; }
  std::vector<Array>& inputs() { return inputs_; }
  std::vector<Array>& weights() { return weights_; }
  std::int64_t samples() const { return inputs_[0].shape[0]; }

  rankine::CallArguments arguments;
  std::vector<Array> masks;  ///< of the inputs, an empty one where there is none; none at all if empty
  bool training = true;
  bool wants_input_gradients = true, wants_weight_gradients = true;
  std::int64_t step = 3;
  std::uint64_t seed = 7;

 private:
  std::vector<rankine::ValueSpec> specs() const;

  std::unique_ptr<rankine::Layer> layer_;
  rankine::DType dtype_;
  std::vector<DeclaredVariable> variables_;
  std::vector<Array> inputs_, weights_;
  bool same_input_ = false;
};

/// A layer by class name; throws what its maker throws.
std::unique_ptr<rankine::Layer> make_layer(const std::string& class_name, const nlohmann::json& config,
                                           rankine::DType dtype = rankine::DType::float32);
/// An operation from the envelope that Keras writes for it.
std::unique_ptr<rankine::Layer> make_operation(const nlohmann::json& envelope,
                                               rankine::DType dtype = rankine::DType::float32);
/// The largest distance of two lists of equal length.
double largest_difference(const std::vector<double>& a, const std::vector<double>& b);
