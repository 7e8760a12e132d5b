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
  binary_crossentropy,
  categorical_crossentropy,
  sparse_categorical_crossentropy,
};

/// Every name that Keras has for a supported loss; the first one of a kind is the one for people.
struct LossName {
  std::string_view name;
  LossKind kind;
};
constexpr auto k_loss_names = std::to_array<LossName>({
    {"mean_squared_error", LossKind::mean_squared_error},
    {"MeanSquaredError", LossKind::mean_squared_error},
    {"mse", LossKind::mean_squared_error},
    {"MSE", LossKind::mean_squared_error},
    {"binary_crossentropy", LossKind::binary_crossentropy},
    {"BinaryCrossentropy", LossKind::binary_crossentropy},
    {"bce", LossKind::binary_crossentropy},
    {"BCE", LossKind::binary_crossentropy},
    {"categorical_crossentropy", LossKind::categorical_crossentropy},
    {"CategoricalCrossentropy", LossKind::categorical_crossentropy},
    {"sparse_categorical_crossentropy", LossKind::sparse_categorical_crossentropy},
    {"SparseCategoricalCrossentropy", LossKind::sparse_categorical_crossentropy},
});

std::string_view people_name(LossKind kind) {
  return std::find_if(k_loss_names.begin(), k_loss_names.end(),
                      [&](const LossName& n) { return n.kind == kind; })
      ->name;
}

LossKind kind_from_name(const std::string& name, const std::string& owner) {
  std::vector<std::string> names, supported;
  for (const LossName& known : k_loss_names) {
    if (known.name == name) return known.kind;
    names.emplace_back(known.name);
    if (known.name == people_name(known.kind)) supported.emplace_back(known.name);
  }
  throw ConfigError(owner + " is '" + name + "', which isn't supported" + did_you_mean(name, names) +
                    " Supported: " + listed(supported));
}

struct LossOptions {
  LossKind kind = LossKind::mean_squared_error;
  bool sums = false, from_logits = false;
  double label_smoothing = 0.0;
};

class RowLoss final : public Loss {
 public:
  explicit RowLoss(const LossOptions& options) : options_(options) {}

  std::string_view name() const override { return people_name(options_.kind); }
  bool sums() const override { return options_.sums; }
  std::int64_t elements(const ValueSpec& prediction) const override { return prediction.rows(); }

  ValueSpec target(const ValueSpec& prediction, const std::string& output) const override {
    const Shape& shape = prediction.shape;
    if (shape.rank() == 0 || !is_floating(prediction.dtype))
      throw ConfigError("output '" + output + "' can't have the loss " + std::string(name()) +
                        ": it works over the last dimension of floating predictions, which are " +
                        std::string(name_of(prediction.dtype)) + " samples of shape " + shape.to_string());
    if (options_.kind != LossKind::sparse_categorical_crossentropy) return prediction;
    return {Shape(std::vector<std::int64_t>(shape.sizes().begin(), shape.sizes().end() - 1)), DType::int32};
  }

  void compute(Backend& backend, Tensor prediction, Tensor target, double scale, Tensor element_loss,
               Tensor gradient) const override {
    const LossOptions& o = options_;
    switch (o.kind) {
      case LossKind::mean_squared_error:
        backend.mean_squared_error(prediction, target, scale, element_loss, gradient);
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

bool read_reduction(ConfigReader& reader) {
  const json* value = reader.raw("reduction");
  if (value == nullptr) return false;
  const std::string reduction = value->is_string() ? value->get<std::string>() : "none";
  if (reduction == "sum") return true;
  if (reduction != "sum_over_batch_size" && reduction != "mean")
    reader.refuse("has reduction = " + value->dump() + "; supported: sum_over_batch_size, mean, sum");
  return false;
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
  options.kind = kind_from_name(object->name, owner);
  if (object->config == nullptr) return std::make_shared<RowLoss>(options);

  ConfigReader reader(*object->config, owner + " (" + object->name + ")");
  options.sums = read_reduction(reader);
  if (options.kind != LossKind::mean_squared_error)
    options.from_logits = reader.get<bool>("from_logits", false);
  if (options.kind == LossKind::sparse_categorical_crossentropy) {
    if (reader.optional<std::int64_t>("ignore_class"))
      reader.refuse("has an ignore_class; only ignore_class = null is supported");
  } else if (options.kind != LossKind::mean_squared_error) {
    options.label_smoothing = reader.get<double>("label_smoothing", 0.0);
    if (options.label_smoothing < 0.0 || options.label_smoothing > 1.0)
      reader.refuse("has label_smoothing = " + std::to_string(options.label_smoothing) +
                    "; it must lie between 0 and 1");
  }
  if (options.kind != LossKind::mean_squared_error && reader.get<std::int64_t>("axis", -1) != -1)
    reader.refuse("has an axis other than -1; only the last axis is supported");
  reader.finish();
  return std::make_shared<RowLoss>(options);
}

}  // namespace rankine
