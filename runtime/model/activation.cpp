#include "runtime/model/activation.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "runtime/error.hpp"
#include "runtime/model/config_reader.hpp"
#include "runtime/model/known_words.hpp"
#include "runtime/model/layers/rows.hpp"

namespace rankine {

using nlohmann::json;

namespace {

struct NamedActivation {
  std::string_view name;
  ActivationFunction function;
  Activation::Rows rows = Activation::Rows::none;
};

constexpr ActivationFunction plain(ActivationKind kind) {
  return {kind, 0.0, -1.0, 0.0, 1.0};
}
constexpr ActivationFunction with_slope(ActivationKind kind, double slope) {
  return {kind, slope, -1.0, 0.0, 1.0};
}
constexpr ActivationFunction with_threshold(ActivationKind kind, double threshold) {
  return {kind, 0.0, -1.0, threshold, 1.0};
}
constexpr ActivationFunction with_alpha(ActivationKind kind, double alpha) {
  return {kind, 0.0, -1.0, 0.0, alpha};
}

/// Keras's names with the defaults of its functions.
constexpr auto k_activations = std::to_array<NamedActivation>({
    {"linear", plain(ActivationKind::linear)},
    {"relu", plain(ActivationKind::relu)},
    {"relu6", plain(ActivationKind::relu6)},
    {"leaky_relu", with_slope(ActivationKind::leaky_relu, 0.2)},
    {"elu", with_alpha(ActivationKind::elu, 1.0)},
    {"selu", plain(ActivationKind::selu)},
    {"celu", with_alpha(ActivationKind::celu, 1.0)},
    {"gelu", plain(ActivationKind::gelu)},
    {"silu", plain(ActivationKind::silu)},
    {"swish", plain(ActivationKind::silu)},
    {"softplus", plain(ActivationKind::softplus)},
    {"softsign", plain(ActivationKind::softsign)},
    {"tanh", plain(ActivationKind::tanh)},
    {"sigmoid", plain(ActivationKind::sigmoid)},
    {"hard_sigmoid", plain(ActivationKind::hard_sigmoid)},
    {"hard_silu", plain(ActivationKind::hard_silu)},
    {"hard_swish", plain(ActivationKind::hard_silu)},
    {"hard_tanh", plain(ActivationKind::hard_tanh)},
    {"mish", plain(ActivationKind::mish)},
    {"exponential", plain(ActivationKind::exponential)},
    {"log_sigmoid", plain(ActivationKind::log_sigmoid)},
    {"squareplus", with_alpha(ActivationKind::squareplus, 4.0)},
    {"hard_shrink", with_threshold(ActivationKind::hard_shrink, 0.5)},
    {"soft_shrink", with_threshold(ActivationKind::soft_shrink, 0.5)},
    {"tanh_shrink", plain(ActivationKind::tanh_shrink)},
    {"sparse_plus", plain(ActivationKind::sparse_plus)},
    {"sparse_sigmoid", plain(ActivationKind::sparse_sigmoid)},
    {"softmax", {}, Activation::Rows::softmax},
    {"log_softmax", {}, Activation::Rows::log_softmax},
    {"glu", {}, Activation::Rows::glu},
});

Activation activation_from_name(const std::string& name, const std::string& owner) {
  const auto* found = std::find_if(k_activations.begin(), k_activations.end(),
                                   [&](const NamedActivation& row) { return row.name == name; });
  if (found != k_activations.end()) {
    return found->rows == Activation::Rows::none ? Activation(found->function) : Activation(found->rows);
  }
  const std::vector<std::string> names = activation_names();
  throw ConfigError(owner + " has the activation '" + name + "', which isn't supported" +
                    did_you_mean(name, names) + " Supported: " + listed(names));
}

void refuse_negative(const ConfigReader& reader, double value, const char* key) {
  if (value < 0.0) reader.refuse(std::string("has a negative ") + key + "; it must be at least 0");
}

Activation relu_layer(ConfigReader& reader) {
  ActivationFunction f{ActivationKind::relu, reader.get<double>("negative_slope", 0.0), -1.0,
                       reader.get<double>("threshold", 0.0), 1.0};
  if (const auto most = reader.optional<double>("max_value")) {
    refuse_negative(reader, *most, "max_value");
    f.max_value = *most;
  }
  refuse_negative(reader, f.negative_slope, "negative_slope");
  refuse_negative(reader, f.threshold, "threshold");
  return Activation(f);
}

}  // namespace

std::vector<std::string> activation_names() {
  std::vector<std::string> names;
  for (const NamedActivation& row : k_activations) names.emplace_back(row.name);
  return names;
}

Activation activation_of_layer(std::string_view class_name, const json& config, const std::string& owner) {
  ConfigReader reader(config, owner);
  Activation result;
  if (class_name == "ReLU") {
    result = relu_layer(reader);
  } else if (class_name == "LeakyReLU") {
    const double slope = reader.get<double>("negative_slope", 0.3);
    refuse_negative(reader, slope, "negative_slope");
    result = Activation(with_slope(ActivationKind::leaky_relu, slope));
  } else if (class_name == "ELU") {
    result = Activation(with_alpha(ActivationKind::elu, reader.get<double>("alpha", 1.0)));
  } else if (class_name == "Softmax") {
    if (reader.get<std::int64_t>("axis", -1) != -1)
      reader.refuse("is used as an activation with an axis other than -1; use a Softmax layer of its own");
    result = Activation(Activation::Rows::softmax);
  } else {
    reader.refuse("has an activation of class '" + std::string(class_name) +
                  "', which isn't supported; supported are functions by name, ReLU, LeakyReLU, ELU, Softmax");
  }
  reader.finish();
  return result;
}

Activation activation_from_config(const json& config, const std::string& owner) {
  if (config.is_null()) return Activation();
  if (config.is_string()) return activation_from_name(config.get<std::string>(), owner);
  if (config.is_object() && config.contains("class_name") && config["class_name"].is_string() &&
      config.contains("config")) {
    const std::string class_name = config["class_name"].get<std::string>();
    if (config["config"].is_string()) return activation_from_name(config["config"].get<std::string>(), owner);
    if (config["config"].is_object()) return activation_of_layer(class_name, config["config"], owner);
  }
  throw ConfigError(owner + " has an activation that is neither a name nor the config of a layer");
}

bool Activation::gradient_uses_output() const {
  switch (rows_) {
    case Rows::softmax:
    case Rows::log_softmax:
      return true;
    case Rows::glu:
      return false;
    case Rows::none:
      break;
  }
  // The sign of the output is the sign of the input, and the sign is all that the gradient looks at.
  const bool keeps_sign =
      function_.kind == ActivationKind::leaky_relu ||
      (function_.kind == ActivationKind::relu && function_.max_value < 0.0 && function_.threshold == 0.0);
  return is_linear() || (keeps_sign && function_.negative_slope >= 0.0);
}

Shape Activation::output(const Shape& x, const std::string& owner) const {
  if (rows_ == Rows::none) return x;
  if (x.rank() == 0) throw ConfigError(owner + " applies an activation over rows to single numbers");
  if (rows_ != Rows::glu) return x;
  if (x[-1] % 2 != 0)
    throw ConfigError(owner + " applies glu to shape " + x.to_string() + ", whose last dimension is odd");
  Shape half = x;
  half[-1] /= 2;
  return half;
}

std::vector<Shape> Activation::forward_scratch(const Shape& x) const {
  if (rows_ != Rows::glu) return {};
  return {output(x, "")};
}

std::vector<Shape> Activation::gradient_scratch(const Shape& x) const {
  if (rows_ != Rows::glu) return {};
  return {output(x, ""), output(x, "")};
}

void Activation::forward(Backend& backend, Tensor x, Tensor y, std::span<const Tensor> scratch) const {
  switch (rows_) {
    case Rows::none:
      backend.activation(function_, x, y);
      break;
    case Rows::softmax:
    case Rows::log_softmax:
      backend.softmax(x, rows_ == Rows::log_softmax, y);
      break;
    case Rows::glu:
      copy_columns(backend, x, 0, y);
      copy_columns(backend, x, y.shape[-1], scratch[0]);
      backend.activation(plain(ActivationKind::sigmoid), scratch[0], scratch[0]);
      backend.multiply(y, scratch[0], y);
      break;
  }
}

void Activation::gradient(Backend& backend, Tensor kept, Tensor dy, Tensor dx,
                          std::span<const Tensor> scratch) const {
  switch (rows_) {
    case Rows::none:
      backend.activation_gradient(function_, kept, dy, dx);
      break;
    case Rows::softmax:
    case Rows::log_softmax:
      backend.softmax_gradient(kept, rows_ == Rows::log_softmax, dy, dx);
      break;
    case Rows::glu: {
      const ActivationFunction sigmoid = plain(ActivationKind::sigmoid);
      const std::int64_t half = dy.shape[-1];
      copy_columns(backend, kept, half, scratch[0]);
      backend.activation(sigmoid, scratch[0], scratch[1]);
      backend.multiply(dy, scratch[1], scratch[1]);
      put_columns(backend, scratch[1], dx, 0);
      copy_columns(backend, kept, 0, scratch[1]);
      backend.multiply(dy, scratch[1], scratch[1]);
      backend.activation_gradient(sigmoid, scratch[0], scratch[1], scratch[1]);
      put_columns(backend, scratch[1], dx, half);
      break;
    }
  }
}

}  // namespace rankine
