#pragma once

#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/compute/backend.hpp"
#include "runtime/model/value.hpp"

namespace rankine {

class Model;

/// What the sum of a loss over its entries is divided by (keras.md F.2).
enum class Reduction : std::uint8_t {
  mean,                     ///< the entries that count: "sum_over_batch_size" and "mean"
  mean_with_sample_weight,  ///< their weights' sum
  sum,                      ///< nothing
};

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
  virtual Reduction reduction() const = 0;
  /// The label whose entries don't count, if there is one (Keras's ignore_class).
  virtual std::optional<std::int32_t> ignored() const = 0;
  /// Writes the unreduced losses (double, one an element) and, if wanted, gradient = d(sum of losses) *
  /// scale.
  virtual void compute(Backend& backend, Tensor prediction, Tensor target, double scale, Tensor element_loss,
                       Tensor gradient) const = 0;
};

/// A metric that is a quotient of two sums over the rows of all samples, the same on any number of ranks.
class Metric {
 public:
  virtual ~Metric() = default;
  virtual std::string_view name() const = 0;  ///< "accuracy"
  /// Whether rows that the output's mask leaves out don't count. Keras's precision and recall have them all.
  virtual bool heeds_mask() const = 0;
  /// Writes what each row of the predictions adds to the two sums (double).
  virtual void compute(Backend& backend, Tensor prediction, Tensor target, Tensor numerators,
                       Tensor denominators) const = 0;
};

/// A metric and what Keras calls it in its logs: "mae", "<output>_mae" with several outputs, "mae_1" the
/// second time, and "weighted_mae" for a weighted one of the same name.
struct LoggedMetric {
  std::shared_ptr<const Metric> metric;
  std::string key = {};
  bool is_weighted = false;  ///< of Keras's weighted_metrics: rows count as much as their sample weights say
};

/// The losses of a model's outputs, in output order, with their weights and metrics, from a Keras compile
/// config.
struct OutputLoss {
  std::string output;
  std::shared_ptr<const Loss> loss;
  double weight = 1.0;
  std::vector<LoggedMetric> metrics;

  /// What the sum of unreduced losses is divided by, of which `counted` count. Where that is 0 so is the
  /// loss.
  double divisor(double counted) const {
    if (loss->reduction() == Reduction::sum) return 1.0;
    return counted == 0.0 ? std::numeric_limits<double>::infinity() : counted;
  }
};

/// From `loss`, `loss_weights`, `metrics` and `weighted_metrics` of a compile config; every form that Keras
/// writes (string, envelope, list, dict by output name). Throws ConfigError.
std::vector<OutputLoss> losses_from_compile_config(const nlohmann::json& compile_config,
                                                   std::span<const std::string> output_names,
                                                   std::span<const ValueSpec> predictions);
/// Those of a compiled model.
std::vector<OutputLoss> compiled_losses(const Model& model);

}  // namespace rankine
