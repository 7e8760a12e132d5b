#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "runtime/compute/backend.hpp"
#include "runtime/model/value.hpp"

namespace rankine {

class Model;

/// One output's loss: Keras's classes and config keys (keras.md F.2). A loss object has no state.
class Loss {
 public:
  virtual ~Loss() = default;
  virtual std::string_view name() const = 0;
  /// What the target of a prediction must look like. Throws ConfigError naming the output when the prediction
  /// doesn't fit.
  virtual ValueSpec target(const ValueSpec& prediction, const std::string& output) const = 0;
  /// Elements of the unreduced loss a sample, for the divisor.
  virtual std::int64_t elements(const ValueSpec& prediction) const = 0;
  /// True for reduction "sum": the divisor is 1 instead of the number of elements.
  virtual bool sums() const = 0;
  /// Writes the unreduced losses (double, one an element) and, if wanted, gradient = d(sum of losses) *
  /// scale.
  virtual void compute(Backend& backend, Tensor prediction, Tensor target, double scale, Tensor element_loss,
                       Tensor gradient) const = 0;
};

/// A metric that counts: the value is hits / total, exact on any number of ranks.
class Metric {
 public:
  virtual ~Metric() = default;
  virtual std::string_view name() const = 0;  ///< as Keras logs it: "accuracy"
  /// Where `mask` is there, only rows whose entry isn't 0 are counted.
  virtual std::int64_t hits(Backend& backend, Tensor prediction, Tensor target, Tensor mask) const = 0;
  virtual std::int64_t total(const ValueSpec& prediction, std::int64_t samples) const = 0;
};

/// The losses of a model's outputs, in output order, with their weights and metrics, from a Keras compile
/// config.
struct OutputLoss {
  std::string output;
  std::shared_ptr<const Loss> loss;
  double weight = 1.0;
  std::vector<std::shared_ptr<const Metric>> metrics;

  /// What the sum of unreduced losses of which `entries` count is divided by. Where none counts the sum is 0.
  double divisor(std::int64_t entries) const {
    return loss->sums() || entries == 0 ? 1.0 : static_cast<double>(entries);
  }
};

/// From `loss`, `loss_weights` and `metrics` of a compile config; every form that Keras writes (string,
/// envelope, list, dict by output name). Throws ConfigError.
std::vector<OutputLoss> losses_from_compile_config(const nlohmann::json& compile_config,
                                                   std::span<const std::string> output_names,
                                                   std::span<const ValueSpec> predictions);
/// Those of a compiled model.
std::vector<OutputLoss> compiled_losses(const Model& model);

}  // namespace rankine
