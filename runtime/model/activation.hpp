#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/compute/backend.hpp"

namespace rankine {

/// An activation of Keras: one that acts on single elements, or one that acts on whole rows (the last
/// dimension). It has no state; the caller gives it the memory that it asks for.
class Activation {
 public:
  enum class Rows : std::uint8_t { none, softmax, log_softmax, glu };

  Activation() = default;
  explicit Activation(const ActivationFunction& function) : function_(function) {}
  explicit Activation(Rows rows) : rows_(rows) {}

  bool is_linear() const { return rows_ == Rows::none && function_.kind == ActivationKind::linear; }
  /// Forward may write over its input.
  bool works_in_place() const { return rows_ == Rows::none; }
  /// `gradient` is computed from the output instead of the input, so that the input needn't be kept.
  bool gradient_uses_output() const;

  /// The output's shape for inputs of shape `x` (glu halves the last dimension). Throws ConfigError that
  /// starts with `owner` when the shape doesn't fit.
  Shape output(const Shape& x, const std::string& owner) const;

  /// Scratch, as shapes of one sample.
  std::vector<Shape> forward_scratch(const Shape& x) const;
  std::vector<Shape> gradient_scratch(const Shape& x) const;

  void forward(Backend& backend, Tensor x, Tensor y, std::span<const Tensor> scratch) const;
  /// dx from dy and `kept`: the output if gradient_uses_output(), else the input.
  void gradient(Backend& backend, Tensor kept, Tensor dy, Tensor dx, std::span<const Tensor> scratch) const;

 private:
  ActivationFunction function_;
  Rows rows_ = Rows::none;
};

/// From what a Keras config holds: a name, null (linear), the envelope of a function, or the envelope of an
/// activation layer (ReLU, LeakyReLU, ELU, Softmax). Throws ConfigError that starts with `owner` and lists
/// what is supported.
Activation activation_from_config(const nlohmann::json& config, const std::string& owner);

/// The activation of a layer that is nothing else, from its class and config; `axis` of Softmax must be -1.
Activation activation_of_layer(std::string_view class_name, const nlohmann::json& config,
                               const std::string& owner);

/// Names that activation_from_config knows, aliases included.
std::vector<std::string> activation_names();

}  // namespace rankine
