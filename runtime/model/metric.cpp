#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "runtime/error.hpp"
#include "runtime/model/config_reader.hpp"
#include "runtime/model/known_words.hpp"
#include "runtime/model/loss_config.hpp"

namespace rankine {
namespace {

enum class MetricKind : std::uint8_t {
  sparse_accuracy,
  categorical_accuracy,
  binary_accuracy,
  sparse_top_k,
  categorical_top_k,
  squared_error,
  absolute_error,
  precision,
  recall,
};

/// A supported metric and Keras's names for it, the first one for people.
struct MetricRow {
  MetricKind kind;
  std::array<std::string_view, 4> names;
};
constexpr auto k_metrics = std::to_array<MetricRow>({
    {MetricKind::sparse_accuracy, {"sparse_categorical_accuracy", "SparseCategoricalAccuracy"}},
    {MetricKind::categorical_accuracy, {"categorical_accuracy", "CategoricalAccuracy"}},
    {MetricKind::binary_accuracy, {"binary_accuracy", "BinaryAccuracy"}},
    {MetricKind::sparse_top_k, {"sparse_top_k_categorical_accuracy", "SparseTopKCategoricalAccuracy"}},
    {MetricKind::categorical_top_k, {"top_k_categorical_accuracy", "TopKCategoricalAccuracy"}},
    {MetricKind::squared_error, {"mean_squared_error", "MeanSquaredError", "mse", "MSE"}},
    {MetricKind::absolute_error, {"mean_absolute_error", "MeanAbsoluteError", "mae", "MAE"}},
    {MetricKind::precision, {"precision", "Precision"}},
    {MetricKind::recall, {"recall", "Recall"}},
});

struct MetricOptions {
  MetricRow row = k_metrics[0];
  std::string name;
  double threshold = 0.5;
  std::int64_t k = 5;

  bool is(MetricKind kind) const { return row.kind == kind; }
  bool is_top_k() const { return is(MetricKind::sparse_top_k) || is(MetricKind::categorical_top_k); }
  bool counts_positives() const { return is(MetricKind::precision) || is(MetricKind::recall); }
  bool wants_labels() const { return is(MetricKind::sparse_accuracy) || is(MetricKind::sparse_top_k); }
};

class RowMetric final : public Metric {
 public:
  explicit RowMetric(MetricOptions options) : options_(std::move(options)) {}

  std::string_view name() const override { return options_.name; }
  bool heeds_mask() const override { return !options_.counts_positives(); }

  void compute(Backend& backend, Tensor prediction, Tensor target, Tensor numerators,
               Tensor denominators) const override {
    const MetricOptions& o = options_;
    if (!o.counts_positives())
      backend.fill(denominators,
                   o.is(MetricKind::binary_accuracy) ? static_cast<double>(prediction.shape[-1]) : 1.0);
    switch (o.row.kind) {
      case MetricKind::sparse_accuracy:
        return backend.sparse_hits(prediction, target, numerators);
      case MetricKind::categorical_accuracy:
        return backend.categorical_hits(prediction, target, numerators);
      case MetricKind::binary_accuracy:
        return backend.binary_hits(prediction, target, o.threshold, numerators);
      case MetricKind::sparse_top_k:
        return backend.sparse_top_k_hits(prediction, target, o.k, numerators);
      case MetricKind::categorical_top_k:
        return backend.categorical_top_k_hits(prediction, target, o.k, numerators);
      case MetricKind::squared_error:
        return backend.mean_squared_error(prediction, target, 1.0, numerators, {});
      case MetricKind::absolute_error:
        return backend.mean_absolute_error(prediction, target, 1.0, numerators, {});
      case MetricKind::precision:
        return backend.count_positives(prediction, target, o.threshold, numerators, denominators, {});
      case MetricKind::recall:
        return backend.count_positives(prediction, target, o.threshold, numerators, {}, denominators);
    }
  }

 private:
  MetricOptions options_;
};

/// Keras's choice by shapes for "accuracy".
MetricKind resolve_accuracy(const ValueSpec& prediction, const ValueSpec& target) {
  if (prediction.shape[-1] == 1) return MetricKind::binary_accuracy;
  return target.shape.rank() < prediction.shape.rank() ? MetricKind::sparse_accuracy
                                                       : MetricKind::categorical_accuracy;
}

const MetricRow& row_of(MetricKind kind) {
  return *std::find_if(k_metrics.begin(), k_metrics.end(),
                       [&](const MetricRow& row) { return row.kind == kind; });
}

const MetricRow& row_from_name(const std::string& name, const std::string& owner) {
  std::vector<std::string> names{"accuracy"}, supported{"accuracy"};
  for (const MetricRow& row : k_metrics) {
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

/// Keras takes one threshold or a list of them, with one value for each.
double read_threshold(ConfigReader& reader) {
  const nlohmann::json* given = reader.raw("thresholds");
  if (given == nullptr || given->is_null()) return 0.5;
  const nlohmann::json& one = given->is_array() && given->size() == 1 ? given->front() : *given;
  if (!one.is_number())
    reader.refuse("has thresholds = " + given->dump() + "; only a single one is supported");
  const auto threshold = one.get<double>();
  if (!(threshold >= 0.0 && threshold <= 1.0))
    reader.refuse("has the threshold " + one.dump() + "; it must lie between 0 and 1");
  return threshold;
}

void read_config(const nlohmann::json& config, const std::string& owner, MetricOptions& options) {
  ConfigReader reader(config, owner);
  reader.ignore({"dtype"});
  options.name = reader.optional<std::string>("name").value_or(std::string(options.row.names[0]));
  if (options.is(MetricKind::binary_accuracy)) options.threshold = reader.get<double>("threshold", 0.5);
  if (options.is_top_k()) {
    options.k = reader.get<std::int64_t>("k", options.k);
    if (options.k < 1) reader.refuse("has k = " + std::to_string(options.k) + "; it must be 1 or more");
  }
  if (options.is(MetricKind::sparse_top_k) && reader.get<bool>("from_sorted_ids", false))
    reader.refuse("has from_sorted_ids = true; only scores of all classes are supported");
  if (options.counts_positives()) {
    options.threshold = read_threshold(reader);
    for (const char* key : {"top_k", "class_id"}) {
      if (reader.optional<std::int64_t>(key))
        reader.refuse(std::string("has a ") + key + "; only " + key + " = null is supported");
    }
  }
  reader.finish();
}

void expect_fit(const MetricOptions& options, const ValueSpec& prediction, const ValueSpec& target,
                const std::string& owner) {
  const bool labels = target.dtype == DType::int32 && target.shape.rank() + 1 == prediction.shape.rank();
  if (options.wants_labels() ? labels : target == prediction) return;
  throw ConfigError(owner + " is '" + options.name + "', which needs " +
                    (options.wants_labels() ? "integer labels" : "targets of the prediction's shape") +
                    " as targets, but the output's loss has " +
                    (labels ? "integer labels" : "targets of the prediction's shape"));
}

}  // namespace

std::shared_ptr<const Metric> metric_from_config(const nlohmann::json& config, const ValueSpec& prediction,
                                                 const ValueSpec& target, const std::string& owner) {
  const std::optional<NamedObject> object = named_object(config);
  if (!object) throw ConfigError(owner + " is neither a name nor the config of a metric: " + config.dump());
  MetricOptions options;
  options.name = object->name;
  std::string lower = object->name;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool is_accuracy = config.is_string() && (lower == "accuracy" || lower == "acc");
  options.row =
      is_accuracy ? row_of(resolve_accuracy(prediction, target)) : row_from_name(object->name, owner);
  if (object->config != nullptr) read_config(*object->config, owner + " (" + object->name + ")", options);
  expect_fit(options, prediction, target, owner);
  return std::make_shared<RowMetric>(std::move(options));
}

}  // namespace rankine
