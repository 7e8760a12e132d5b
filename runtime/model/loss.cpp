#include "runtime/model/loss.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "runtime/error.hpp"
#include "runtime/model/config_reader.hpp"
#include "runtime/model/known_words.hpp"
#include "runtime/model/loss_config.hpp"

namespace rankine {

using nlohmann::json;

namespace {

enum class LossKind : std::uint8_t {
  mean_squared_error,
  mean_absolute_error,
  huber,
  binary_crossentropy,
  categorical_crossentropy,
  sparse_categorical_crossentropy,
};

/// A supported loss: Keras's names for it, the first one for people, and the keys of its config.
struct LossRow {
  LossKind kind;
  std::array<std::string_view, 4> names;
  bool is_crossentropy = false, smooths = false;
};
constexpr auto k_losses = std::to_array<LossRow>({
    {LossKind::mean_squared_error, {"mean_squared_error", "MeanSquaredError", "mse", "MSE"}},
    {LossKind::mean_absolute_error, {"mean_absolute_error", "MeanAbsoluteError", "mae", "MAE"}},
    {LossKind::huber, {"huber", "Huber"}},
    {LossKind::binary_crossentropy, {"binary_crossentropy", "BinaryCrossentropy", "bce", "BCE"}, true, true},
    {LossKind::categorical_crossentropy, {"categorical_crossentropy", "CategoricalCrossentropy"}, true, true},
    {LossKind::sparse_categorical_crossentropy,
     {"sparse_categorical_crossentropy", "SparseCategoricalCrossentropy"},
     true},
});

const LossRow& row_from_name(const std::string& name, const std::string& owner) {
  std::vector<std::string> names, supported;
  for (const LossRow& row : k_losses) {
    for (const std::string_view known : row.names) {
      if (known.empty()) continue;
      if (known == name) return row;
      names.emplace_back(known);
    }
    supported.emplace_back(row.names[0]);
  }
  throw ConfigError(owner + " is '" + name + "', which isn't supported" + did_you_mean(name, names) +
                    " Supported: " + listed(supported));
}

struct LossOptions {
  LossRow row = k_losses[0];
  Reduction reduction = Reduction::mean;
  bool from_logits = false;
  double label_smoothing = 0.0, delta = 1.0;
  std::optional<std::int32_t> ignored = {};
};

class RowLoss final : public Loss {
 public:
  explicit RowLoss(const LossOptions& options) : options_(options) {}

  std::string_view name() const override { return options_.row.names[0]; }
  Reduction reduction() const override { return options_.reduction; }
  std::optional<std::int32_t> ignored() const override { return options_.ignored; }
  std::int64_t elements(const ValueSpec& prediction) const override { return prediction.rows(); }

  ValueSpec target(const ValueSpec& prediction, const std::string& output) const override {
    const Shape& shape = prediction.shape;
    if (shape.rank() == 0 || !is_floating(prediction.dtype))
      throw ConfigError("output '" + output + "' can't have the loss " + std::string(name()) +
                        ": it works over the last dimension of floating predictions, which are " +
                        std::string(name_of(prediction.dtype)) + " samples of shape " + shape.to_string());
    if (options_.row.kind != LossKind::sparse_categorical_crossentropy) return prediction;
    return {Shape(std::vector<std::int64_t>(shape.sizes().begin(), shape.sizes().end() - 1)), DType::int32};
  }

  void compute(Backend& backend, Tensor prediction, Tensor target, double scale, Tensor element_loss,
               Tensor gradient) const override {
    const LossOptions& o = options_;
    switch (o.row.kind) {
      case LossKind::mean_squared_error:
        backend.mean_squared_error(prediction, target, scale, element_loss, gradient);
        break;
      case LossKind::mean_absolute_error:
        backend.mean_absolute_error(prediction, target, scale, element_loss, gradient);
        break;
      case LossKind::huber:
        backend.huber(prediction, target, o.delta, scale, element_loss, gradient);
        break;
      case LossKind::binary_crossentropy:
        backend.binary_cross_entropy(prediction, target, o.from_logits, o.label_smoothing, scale,
                                     element_loss, gradient);
        break;
      case LossKind::categorical_crossentropy:
        backend.categorical_cross_entropy(prediction, target, o.from_logits, o.label_smoothing, scale,
                                          element_loss, gradient);
        break;
      case LossKind::sparse_categorical_crossentropy:
        backend.sparse_cross_entropy(prediction, target, o.from_logits, scale, element_loss, gradient);
        break;
    }
  }

 private:
  LossOptions options_;
};

Reduction read_reduction(ConfigReader& reader) {
  const json* value = reader.raw("reduction");
  if (value == nullptr || *value == "sum_over_batch_size" || *value == "mean") return Reduction::mean;
  if (*value == "sum") return Reduction::sum;
  if (*value == "mean_with_sample_weight") return Reduction::mean_with_sample_weight;
  reader.refuse("has reduction = " + value->dump() +
                (value->is_null() || *value == "none" ? ", which leaves no single loss to train by" : "") +
                "; supported: sum_over_batch_size, mean, mean_with_sample_weight, sum");
}

double read_smoothing(ConfigReader& reader) {
  const auto smoothing = reader.get<double>("label_smoothing", 0.0);
  if (smoothing < 0.0 || smoothing > 1.0)
    reader.refuse("has label_smoothing = " + std::to_string(smoothing) + "; it must lie between 0 and 1");
  return smoothing;
}

std::optional<std::int32_t> read_ignored(ConfigReader& reader) {
  const auto ignored = reader.optional<std::int64_t>("ignore_class");
  if (!ignored) return std::nullopt;
  if (*ignored != static_cast<std::int32_t>(*ignored))
    reader.refuse("has ignore_class = " + std::to_string(*ignored) + ", which no label can be");
  return static_cast<std::int32_t>(*ignored);
}

}  // namespace

std::optional<NamedObject> named_object(const json& value) {
  if (value.is_string()) return NamedObject{value.get<std::string>(), nullptr};
  if (!value.is_object() || !value.contains("class_name") || !value["class_name"].is_string())
    return std::nullopt;
  const auto config = value.find("config");
  if (config != value.end() && config->is_string()) return NamedObject{config->get<std::string>(), nullptr};
  static const json k_none = json::object();
  return NamedObject{value["class_name"].get<std::string>(),
                     config != value.end() && config->is_object() ? &*config : &k_none};
}

std::shared_ptr<const Loss> loss_from_config(const json& config, const std::string& owner) {
  const std::optional<NamedObject> object = named_object(config);
  if (!object) throw ConfigError(owner + " is neither a name nor the config of a loss: " + config.dump());
  if (object->name == "crossentropy" || object->name == "ce")
    throw ConfigError(owner + " is '" + object->name +
                      "', which Keras resolves by the targets; name it in full: binary_crossentropy, "
                      "categorical_crossentropy or sparse_categorical_crossentropy");
  LossOptions options;
  options.row = row_from_name(object->name, owner);
  if (object->config == nullptr) return std::make_shared<RowLoss>(options);

  ConfigReader reader(*object->config, owner + " (" + object->name + ")");
  options.reduction = read_reduction(reader);
  if (options.row.kind == LossKind::huber) options.delta = reader.get<double>("delta", 1.0);
  if (options.row.kind == LossKind::sparse_categorical_crossentropy) options.ignored = read_ignored(reader);
  if (options.row.is_crossentropy) options.from_logits = reader.get<bool>("from_logits", false);
  if (options.row.is_crossentropy && reader.get<std::int64_t>("axis", -1) != -1)
    reader.refuse("has an axis other than -1; only the last axis is supported");
  if (options.row.smooths) options.label_smoothing = read_smoothing(reader);
  reader.finish();
  return std::make_shared<RowLoss>(options);
}

}  // namespace rankine
