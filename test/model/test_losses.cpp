#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "runtime/error.hpp"
#include "runtime/model/loss_config.hpp"
#include "test/model/golden_file.hpp"
#include "test/model/layer_run.hpp"

using namespace rankine;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

Backend& backend() {
  static const std::unique_ptr<Backend> k_backend = make_cpu_backend(1, best_instruction_set());
  return *k_backend;
}

const std::vector<std::string> k_one{"y"};
const std::vector<std::string> k_two{"first", "second"};
const std::vector<ValueSpec> k_one_spec{{{5}}};
const std::vector<ValueSpec> k_two_specs{{{5}}, {{1}}};

std::vector<OutputLoss> losses_of_one(const json& config) {
  return losses_from_compile_config(config, k_one, k_one_spec);
}
std::vector<OutputLoss> losses_of_two(const json& config) {
  return losses_from_compile_config(config, k_two, k_two_specs);
}

json envelope(const char* class_name, const json& config) {
  return {{"module", "keras.losses"},
          {"class_name", class_name},
          {"config", config},
          {"registered_name", nullptr}};
}

std::string refusal(const json& config) {
  try {
    losses_of_two(config);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

void check_loss(const json& golden, DType dtype) {
  const auto loss = loss_from_config(golden["loss"], "the loss");
  Array prediction = Array::from_json(golden["prediction"], dtype);
  Array target = Array::from_json(golden["target"], dtype);
  Array elements =
      Array::of(Shape(golden["elements"]["shape"].get<std::vector<std::int64_t>>()), DType::float64);
  Array gradient = Array::of(prediction.shape, dtype);
  constexpr double k_scale = 0.25;  // exact, so that the golden figures need no other tolerance
  loss->compute(backend(), prediction.tensor(), target.tensor(), k_scale, elements.tensor(),
                gradient.tensor());
  std::vector<double> unscaled = gradient.values();
  for (double& g : unscaled) g /= k_scale;
  const bool exact = dtype == DType::float64;
  CHECK(largest_difference(elements.floats, golden["elements"]["data"].get<std::vector<double>>()) <=
        (exact ? 1e-12 : golden["elements_tolerance"].get<double>()));
  CHECK(largest_difference(unscaled, golden["gradient"]["data"].get<std::vector<double>>()) <=
        (exact ? 1e-12 * 100 : golden["gradient_tolerance"].get<double>()));
  // The loss alone has the same bits.
  const std::vector<double> with_gradient = elements.floats;
  loss->compute(backend(), prediction.tensor(), target.tensor(), k_scale, elements.tensor(), {});
  CHECK(elements.floats == with_gradient);
  // What the loss says of its target and of its elements fits the golden shapes.
  const ValueSpec spec{
      Shape(std::vector<std::int64_t>(prediction.shape.sizes().begin() + 1, prediction.shape.sizes().end())),
      dtype};
  CHECK(loss->target(spec, "y").shape.with_leading(prediction.shape[0]) == target.shape);
  CHECK(loss->elements(spec) * prediction.shape[0] == elements.shape.elements());
}

}  // namespace

TEST_CASE("losses are what Keras computes", "[losses][golden]") {
  const json cases = golden_json("layers/losses.json")["cases"];
  REQUIRE(cases.size() > 10);
  for (const json& golden : cases) {
    INFO(golden["name"]);
    check_loss(golden, DType::float64);
    check_loss(golden, DType::float32);
  }
}

TEST_CASE("metrics are what Keras computes", "[losses][golden]") {
  const json cases = golden_json("layers/metrics.json")["cases"];
  REQUIRE(cases.size() > 8);
  for (const json& golden : cases) {
    for (const DType dtype : {DType::float64, DType::float32}) {
      INFO(golden["name"]);
      Array prediction = Array::from_json(golden["prediction"], dtype);
      Array target = Array::from_json(golden["target"], dtype);
      const auto sample = [](const Array& array) {
        return Shape(std::vector<std::int64_t>(array.shape.sizes().begin() + 1, array.shape.sizes().end()));
      };
      const auto metric = metric_from_config(golden["metric"], {sample(prediction), dtype},
                                             {sample(target), target.dtype}, "the metric");
      CHECK(metric->name() == golden["called"].get<std::string>());
      const Shape rows = Shape{prediction.shape.product(0, prediction.shape.rank() - 1)};
      Array numerators = Array::of(rows, DType::float64), denominators = Array::of(rows, DType::float64);
      metric->compute(backend(), prediction.tensor(), target.tensor(), numerators.tensor(),
                      denominators.tensor());
      const auto sum = [](const Array& a) { return std::accumulate(a.floats.begin(), a.floats.end(), 0.0); };
      const double value = sum(denominators) == 0 ? 0.0 : sum(numerators) / sum(denominators);
      const auto expected = golden["value"].get<double>();
      CHECK(std::abs(value - expected) <=
            (dtype == DType::float64 ? 1e-12 : golden["tolerance"].get<double>()));
    }
  }
}

TEST_CASE("metrics are called as in Keras's logs", "[losses]") {
  const auto keys = [](const std::vector<OutputLoss>& losses) {
    std::vector<std::string> all;
    for (const OutputLoss& loss : losses)
      for (const LoggedMetric& logged : loss.metrics) all.push_back(logged.key);
    return all;
  };
  CHECK(keys(losses_of_one({{"loss", "mse"}, {"metrics", {"mse", "MSE", "mse", "Precision", "acc"}}})) ==
        std::vector<std::string>{"mse", "MSE", "mse_1", "Precision", "acc"});
  CHECK(keys(losses_of_two({{"loss", "mse"}, {"metrics", {{"first", {"mae", "mae"}}, {"second", "mae"}}}})) ==
        std::vector<std::string>{"first_mae", "first_mae_1", "second_mae"});
  CHECK(keys(losses_of_one(
            {{"loss", "mse"}, {"metrics", {"mae"}}, {"weighted_metrics", {"mae", "mae", "mse"}}})) ==
        std::vector<std::string>{"mae", "weighted_mae", "weighted_mae_1", "mse"});
  CHECK(keys(losses_of_two({{"loss", "mse"},
                            {"metrics", {{"second", "mae"}}},
                            {"weighted_metrics", {{"first", "mae"}, {"second", "mae"}}}})) ==
        std::vector<std::string>{"first_mae", "second_mae", "second_weighted_mae"});
}

TEST_CASE("every form of a loss in a compile config", "[losses]") {
  CHECK(losses_of_one({{"loss", "mse"}})[0].loss->name() == "mean_squared_error");
  CHECK(losses_of_one({{"loss", "BCE"}})[0].loss->name() == "binary_crossentropy");
  CHECK(losses_of_one({{"loss", {"mse"}}})[0].loss->name() == "mean_squared_error");
  CHECK(losses_of_one({{"loss", {{"dense_1", "mse"}}}})[0].loss->name() == "mean_squared_error");
  const json function{{"module", "builtins"}, {"class_name", "function"}, {"config", "mean_squared_error"}};
  CHECK(losses_of_one({{"loss", function}})[0].loss->name() == "mean_squared_error");
  const auto summed = losses_of_one(
      {{"loss",
        envelope("SparseCategoricalCrossentropy",
                 {{"name", "x"}, {"reduction", "sum"}, {"from_logits", true}, {"ignore_class", nullptr}})}});
  CHECK(summed[0].loss->name() == "sparse_categorical_crossentropy");
  CHECK(summed[0].loss->reduction() == Reduction::sum);
  CHECK(summed[0].loss->target(k_one_spec[0], "y") == ValueSpec{{}, DType::int32});

  CHECK(losses_of_one({{"loss", "mae"}})[0].loss->name() == "mean_absolute_error");
  const auto ignoring = losses_of_one(
      {{"loss", envelope("SparseCategoricalCrossentropy",
                         {{"ignore_class", -1}, {"reduction", "mean_with_sample_weight"}})}})[0];
  CHECK(ignoring.loss->ignored() == -1);
  CHECK(ignoring.loss->reduction() == Reduction::mean_with_sample_weight);
  CHECK(ignoring.divisor(3.0) == 3.0);
  CHECK(1.0 / ignoring.divisor(0.0) == 0.0);

  for (const json& loss : {json{"mse", "bce"}, json{{"first", "mse"}, {"second", "bce"}},
                           json{{"mse"}, {"bce"}}, json{{"inner", {{"second", "bce"}}}, {"first", "mse"}}}) {
    INFO(loss);
    const auto losses = losses_of_two({{"loss", loss}});
    REQUIRE(losses.size() == 2);
    CHECK(losses[0].output == "first");
    CHECK(losses[0].loss->name() == "mean_squared_error");
    CHECK(losses[1].loss->name() == "binary_crossentropy");
    CHECK(losses[1].weight == 1.0);
  }
  const auto both = losses_of_two({{"loss", "mse"}, {"loss_weights", {2, 0.5}}});
  CHECK(both[0].weight == 2.0);
  CHECK(both[1].weight == 0.5);
  CHECK(losses_of_two({{"loss", "mse"}, {"loss_weights", {{"second", 3}, {"first", 1}}}})[1].weight == 3.0);
}

TEST_CASE("metrics are resolved as Keras does", "[losses]") {
  const auto metric = [](const json& loss, const json& metrics) {
    const auto losses = losses_of_one({{"loss", loss}, {"metrics", metrics}});
    REQUIRE(losses[0].metrics.size() == 1);
    return losses[0].metrics[0].metric;
  };
  Array prediction = Array::of({2, 5}, DType::float32, {.1, .7, .2, .6, .7, .9, .1, .2, .3, .9});
  Array labels = Array::of({2}, DType::int32, {1, 4});
  Array one_hot = Array::of({2, 5}, DType::float32, {0, 1, 0, 0, 0, 1, 0, 0, 0, 0});
  using Sums = std::array<double, 2>;
  const auto sums = [&](const Metric& m, Array& target) -> Sums {
    Array numerators = Array::of({2}, DType::float64), denominators = Array::of({2}, DType::float64);
    m.compute(backend(), prediction.tensor(), target.tensor(), numerators.tensor(), denominators.tensor());
    return {numerators.floats[0] + numerators.floats[1], denominators.floats[0] + denominators.floats[1]};
  };
  const auto sparse = metric("sparse_categorical_crossentropy", {"acc"});
  CHECK(sparse->name() == "acc");
  CHECK(sums(*sparse, labels) == Sums{1, 2});  // the first of equals counts
  CHECK(sums(*metric("categorical_crossentropy", {"accuracy"}), one_hot) == Sums{2, 2});
  CHECK(sums(*metric("binary_crossentropy", {"binary_accuracy"}), one_hot) == Sums{7, 10});
  const auto strict =
      metric("binary_crossentropy", {envelope("BinaryAccuracy", {{"threshold", 0.8}, {"name", "b"}})});
  CHECK(strict->name() == "b");
  CHECK(sums(*strict, one_hot) == Sums{8, 10});

  const auto two = losses_of_two(
      {{"loss", {"sparse_categorical_crossentropy", "bce"}}, {"metrics", {{"second", {"accuracy"}}}}});
  CHECK(two[0].metrics.empty());
  CHECK(two[1].metrics.size() == 1);
  CHECK(losses_of_two({{"loss", "mse"}, {"metrics", {nullptr, "accuracy"}}})[1].metrics.size() == 1);
  CHECK(losses_of_one({{"loss", "mse"}, {"metrics", nullptr}, {"weighted_metrics", json::array()}})[0]
            .metrics.empty());
}

TEST_CASE("losses and metrics that aren't supported are refused by name", "[losses]") {
  CHECK_THAT(refusal({{"loss", "mean_square_error"}}), Contains("did you mean mean_squared_error"));
  CHECK_THAT(refusal({{"loss", "poisson"}}),
             Contains("'first'") && Contains("poisson") && Contains("Supported") && Contains("huber"));
  CHECK_THAT(refusal({{"loss", "crossentropy"}}), Contains("name it in full"));
  CHECK_THAT(refusal({{"loss", nullptr}}), Contains("no loss"));
  CHECK_THAT(refusal({{"loss", {"mse", nullptr}}}), Contains("'second'") && Contains("null"));
  CHECK_THAT(refusal({{"loss", {"mse"}}}), Contains("1 entries") && Contains("2 outputs"));
  CHECK_THAT(refusal({{"loss", {{"first", "mse"}, {"secnd", "mse"}}}}), Contains("did you mean second"));
  CHECK_THAT(refusal({{"loss", envelope("SparseCategoricalCrossentropy",
                                        {{"ignore_class", std::int64_t{1} << 31}})}}),
             Contains("ignore_class"));
  CHECK_THAT(refusal({{"loss", envelope("CategoricalCrossentropy", {{"axis", 1}})}}), Contains("axis"));
  CHECK_THAT(refusal({{"loss", envelope("MeanSquaredError", {{"reduction", nullptr}})}}),
             Contains("reduction = null") && Contains("mean_with_sample_weight"));
  CHECK_THAT(refusal({{"loss", envelope("MeanSquaredError", {{"reduction", "average"}})}}),
             Contains("reduction = \"average\"; supported"));
  CHECK_THAT(refusal({{"loss", envelope("BinaryCrossentropy", {{"label_smoothing", 2.0}})}}),
             Contains("label_smoothing"));
  const std::string unknown = refusal({{"loss", "mse"}, {"metrics", {{"first", "auc"}}}});
  CHECK_THAT(unknown, Contains("'auc'") && Contains("accuracy") && Contains("precision"));
  CHECK_THAT(unknown, !Contains("did you mean"));
  CHECK_THAT(refusal({{"loss", "mse"}, {"metrics", {{"first", "acuracy"}}}}),
             Contains("did you mean accuracy?"));
  const auto refused = [&](const char* class_name, const json& config) {
    return refusal({{"loss", "mse"}, {"metrics", {{"first", envelope(class_name, config)}}}});
  };
  CHECK_THAT(refused("Precision", {{"thresholds", {0.2, 0.5}}}), Contains("only a single one"));
  CHECK_THAT(refused("Recall", {{"thresholds", 1.5}}), Contains("1.5") && Contains("between 0 and 1"));
  CHECK_THAT(refused("Recall", {{"top_k", 2}}), Contains("top_k = null"));
  CHECK_THAT(refused("Precision", {{"class_id", 0}}), Contains("class_id = null"));
  CHECK_THAT(refused("TopKCategoricalAccuracy", {{"k", 0}}), Contains("k = 0"));
  CHECK_THAT(refused("SparseTopKCategoricalAccuracy", {{"from_sorted_ids", true}}),
             Contains("from_sorted_ids"));
  CHECK_THAT(
      refusal({{"loss", {"sparse_categorical_crossentropy", "mse"}}, {"metrics", {{"first", "precision"}}}}),
      Contains("'precision'") && Contains("prediction's shape"));
  CHECK_THAT(refusal({{"loss", "mse"}, {"metrics", {"accuracy"}}}), Contains("one an output"));
  CHECK_THAT(refusal({{"loss", "mse"}, {"metrics", {{"first", "sparse_categorical_accuracy"}}}}),
             Contains("integer labels"));
  CHECK_THAT(refusal({{"loss", "mse"}, {"weighted_metrics", {"accuracy"}}}),
             Contains("weighted_metrics is a list of 1"));
  CHECK_THAT(refusal({{"loss", "mse"}, {"weighted_metrics", {{"first", "auc"}}}}),
             Contains("a weighted metric of"));
  CHECK_THAT(refusal({{"loss", "mse"}, {"loss_weights", {1, "x"}}}), Contains("loss_weights"));
  const std::vector<ValueSpec> scalar{{{}}};
  CHECK_THROWS_WITH(losses_from_compile_config({{"loss", "mse"}}, k_one, scalar), Contains("last dimension"));
}
