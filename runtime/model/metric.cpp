#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "runtime/error.hpp"
#include "runtime/model/config_reader.hpp"
#include "runtime/model/known_words.hpp"
#include "runtime/model/loss_config.hpp"

namespace rankine {
namespace {

enum class Accuracy : std::uint8_t { sparse, categorical, binary };

struct AccuracyName {
  std::string_view name;
  Accuracy kind;
};
constexpr auto k_accuracy_names = std::to_array<AccuracyName>({
    {"sparse_categorical_accuracy", Accuracy::sparse},
    {"SparseCategoricalAccuracy", Accuracy::sparse},
    {"categorical_accuracy", Accuracy::categorical},
    {"CategoricalAccuracy", Accuracy::categorical},
    {"binary_accuracy", Accuracy::binary},
    {"BinaryAccuracy", Accuracy::binary},
});

class AccuracyMetric final : public Metric {
 public:
  AccuracyMetric(std::string name, Accuracy kind, double threshold)
      : name_(std::move(name)), kind_(kind), threshold_(threshold) {}

  std::string_view name() const override { return name_; }
  void compute(Backend& backend, Tensor prediction, Tensor target, Tensor numerators,
               Tensor denominators) const override {
    const std::int64_t columns = prediction.shape[-1];
    switch (kind_) {
      case Accuracy::sparse:
        backend.sparse_hits(prediction, target, numerators);
        break;
      case Accuracy::categorical:
        backend.categorical_hits(prediction, target, numerators);
        break;
      case Accuracy::binary:
        backend.binary_hits(prediction, target, threshold_, numerators);
        break;
    }
    backend.fill(denominators, kind_ == Accuracy::binary ? static_cast<double>(columns) : 1.0);
  }

 private:
  std::string name_;
  Accuracy kind_;
  double threshold_;
};

/// Keras's choice by shapes.
Accuracy resolve_accuracy(const ValueSpec& prediction, const ValueSpec& target) {
  if (prediction.shape[-1] == 1) return Accuracy::binary;
  return target.shape.rank() < prediction.shape.rank() ? Accuracy::sparse : Accuracy::categorical;
}

[[noreturn]] void refuse_metric(const std::string& owner, const std::string& name) {
  std::vector<std::string> names{"accuracy", "acc"};
  for (const AccuracyName& known : k_accuracy_names) names.emplace_back(known.name);
  throw ConfigError(owner + " is '" + name + "', which isn't supported" + did_you_mean(name, names) +
                    " Supported: accuracy, sparse_categorical_accuracy, categorical_accuracy, "
                    "binary_accuracy");
}

void expect_fit(Accuracy kind, const ValueSpec& prediction, const ValueSpec& target, const std::string& name,
                const std::string& owner) {
  const bool labels = target.dtype == DType::int32 && target.shape.rank() + 1 == prediction.shape.rank();
  if (kind == Accuracy::sparse ? labels : target == prediction) return;
  throw ConfigError(owner + " is '" + name + "', which needs " +
                    (kind == Accuracy::sparse ? "integer labels" : "targets of the prediction's shape") +
                    " as targets, but the output's loss has " +
                    (labels ? "integer labels" : "targets of the prediction's shape"));
}

}  // namespace

std::shared_ptr<const Metric> metric_from_config(const nlohmann::json& config, const ValueSpec& prediction,
                                                 const ValueSpec& target, const std::string& owner) {
  const std::optional<NamedObject> object = named_object(config);
  if (!object) throw ConfigError(owner + " is neither a name nor the config of a metric: " + config.dump());
  std::string name = object->name;
  double threshold = 0.5;
  Accuracy kind = Accuracy::sparse;
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (config.is_string() && (lower == "accuracy" || lower == "acc")) {
    kind = resolve_accuracy(prediction, target);
  } else {
    const auto* known = std::find_if(k_accuracy_names.begin(), k_accuracy_names.end(),
                                     [&](const AccuracyName& row) { return row.name == name; });
    if (known == k_accuracy_names.end()) refuse_metric(owner, name);
    kind = known->kind;
  }
  if (object->config != nullptr) {
    ConfigReader reader(*object->config, owner + " (" + name + ")");
    if (kind == Accuracy::binary) threshold = reader.get<double>("threshold", threshold);
    name =
        reader.optional<std::string>("name").value_or(kind == Accuracy::sparse ? "sparse_categorical_accuracy"
                                                      : kind == Accuracy::categorical ? "categorical_accuracy"
                                                                                      : "binary_accuracy");
    reader.finish();
  }
  expect_fit(kind, prediction, target, name, owner);
  return std::make_shared<AccuracyMetric>(name, kind, threshold);
}

}  // namespace rankine
