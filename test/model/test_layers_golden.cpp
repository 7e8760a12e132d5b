#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "test/model/golden_file.hpp"
#include "test/model/layer_run.hpp"

// Every layer kind and option against what Keras computes in float64 (test/golden/make_layer_cases.py),
// against finite differences, and against itself cut into two passes.

using namespace rankine;
using nlohmann::json;

namespace {

const json& cases() {
  static const json k_cases = golden_json("layers/layers.json")["cases"];
  return k_cases;
}

Backend& backend() {
  static const std::unique_ptr<Backend> k_backend = make_cpu_backend(1, best_instruction_set());
  return *k_backend;
}

LayerRun run_of(const json& golden, DType dtype) {
  LayerRun run = golden.contains("module") ? LayerRun(make_operation(golden, dtype), dtype)
                                           : LayerRun(golden["class_name"], golden["config"], dtype);
  std::vector<Array> inputs, weights;
  for (const json& input : golden["inputs"]) inputs.push_back(Array::from_json(input, dtype));
  for (const json& weight : golden["weights"]) weights.push_back(Array::from_json(weight, dtype));
  run.set_inputs(std::move(inputs), golden["same_input"]);
  run.set_weights(std::move(weights));
  run.arguments.use_causal_mask = golden["use_causal_mask"];
  run.arguments.reverse = golden.value("reverse", false);
  run.training = golden.value("training", true);
  if (golden.contains("masks"))
    for (const json& mask : golden["masks"])
      run.masks.push_back(mask.is_null() ? Array{} : Array::from_json(mask, dtype));
  return run;
}

/// Keras says where one value given twice gets its gradient; here the sum over the places is what counts.
std::vector<double> input_gradient(const LayerRun::Result& result, std::size_t i, bool same_input) {
  std::vector<double> sum = result.input_gradients[i].values();
  for (std::size_t j = 1; same_input && j < result.input_gradients.size(); ++j) {
    const std::vector<double> other = result.input_gradients[j].values();
    for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += other[e];
  }
  return sum;
}

double largest(const json& values) {
  double most = 0.0;
  for (const json& value : values["data"]) most = std::max(most, std::abs(value.get<double>()));
  return most;
}

void expect_near(const std::vector<double>& values, const json& expected, double tolerance) {
  CHECK(largest_difference(values, expected["data"].get<std::vector<double>>()) <= tolerance);
}

/// The golden figures have 14 digits; the rest is rounding of float64 in sums of a few hundred terms.
double float64_tolerance(const json& expected) {
  return 1e-12 * std::max(largest(expected), 1e-2);
}

void check_against_keras(const json& golden, DType dtype) {
  const auto tolerance = [&](const json& expected, const json& measured) {
    return dtype == DType::float64 ? float64_tolerance(expected) : measured.get<double>();
  };
  LayerRun run = run_of(golden, dtype);
  const auto result =
      run.run(backend(), 0, run.samples(), Array::from_json(golden["output_gradient"], dtype));
  CHECK(result.output.shape.sizes() == golden["output"]["shape"].get<std::vector<std::int64_t>>());
  expect_near(result.output.values(), golden["output"],
              tolerance(golden["output"], golden["output_tolerance"]));
  for (std::size_t i = 0; i < golden["input_gradients"].size(); ++i) {
    const json& expected = golden["input_gradients"][i];
    if (expected.is_null()) continue;
    INFO("gradient of input " << i);
    expect_near(input_gradient(result, i, golden["same_input"]), expected,
                tolerance(expected, golden["input_gradient_tolerances"][i]));
  }
  for (std::size_t i = 0; i < golden["weight_gradients"].size(); ++i) {
    const json& expected = golden["weight_gradients"][i];
    INFO("gradient of " << golden["weights"][i]["path"]);
    expect_near(result.weight_gradients[i].values(), expected,
                tolerance(expected, golden["weight_gradient_tolerances"][i]));
  }
}

}  // namespace

TEST_CASE("layers are what Keras computes", "[layers][golden]") {
  REQUIRE(cases().size() > 100);
  for (const json& golden : cases()) {
    INFO(golden["name"]);
    check_against_keras(golden, DType::float64);
    check_against_keras(golden, DType::float32);
  }
}

TEST_CASE("layers declare Keras's variables", "[layers][golden]") {
  for (const json& golden : cases()) {
    INFO(golden["name"]);
    const LayerRun run = run_of(golden, DType::float32);
    REQUIRE(run.variables().size() == golden["weights"].size());
    for (std::size_t i = 0; i < run.variables().size(); ++i) {
      const DeclaredVariable& variable = run.variables()[i];
      const json& weight = golden["weights"][i];
      CHECK(variable.shape.sizes() == weight["shape"].get<std::vector<std::int64_t>>());
      // "multi_head_attention/query/kernel" after the layer's own name.
      const std::string path = weight["path"];
      const std::string own =
          variable.group_name.empty() ? variable.name : variable.group_name + "/" + variable.name;
      CHECK(path.substr(path.find('/') + 1) == own);
    }
  }
}

TEST_CASE("gradients of layers are finite differences", "[layers][golden]") {
  std::mt19937 random(11);
  std::normal_distribution<double> normal;
  for (const json& golden : cases()) {
    INFO(golden["name"]);
    LayerRun run = run_of(golden, DType::float64);
    const Array cotangent = Array::from_json(golden["output_gradient"], DType::float64);
    const auto result = run.run(backend(), 0, run.samples(), cotangent);
    const auto objective = [&] {
      const std::vector<double> y = run.run(backend(), 0, run.samples(), {}).output.values();
      double sum = 0.0;
      for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * cotangent.floats[i];
      return sum;
    };
    const auto check = [&](Array& moved, const std::vector<double>& gradient) {
      const std::vector<double> at = moved.floats;
      std::vector<double> direction(at.size());
      for (double& d : direction) d = normal(random);
      const auto along = [&](double by) {
        for (std::size_t i = 0; i < at.size(); ++i) moved.floats[i] = at[i] + by * direction[i];
        const double value = objective();
        moved.floats = at;
        return value;
      };
      constexpr double k_step = 1e-6;
      const double slope = (along(k_step) - along(-k_step)) / (2 * k_step);
      double expected = 0.0, size = 1e-2;
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        expected += gradient[i] * direction[i];
        size += std::abs(gradient[i] * direction[i]);
      }
      CHECK(std::abs(slope - expected) <= 1e-6 * size);
    };
    const bool same_input = golden["same_input"];
    for (std::size_t i = 0; i < (same_input ? 1 : run.inputs().size()); ++i) {
      if (is_floating(run.inputs()[i].dtype)) check(run.inputs()[i], input_gradient(result, i, same_input));
    }
    for (std::size_t i = 0; i < run.weights().size(); ++i)
      check(run.weights()[i], result.weight_gradients[i].values());
  }
}

TEST_CASE("passes over parts of a batch give the same bits", "[layers][golden]") {
  for (const json& golden : cases()) {
    if (golden["class_name"] == "BatchNormalization")
      continue;  // of the whole batch: training/test_same_bits
    INFO(golden["name"]);
    LayerRun run = run_of(golden, DType::float32);
    const Array cotangent = Array::from_json(golden["output_gradient"], DType::float32);
    const auto whole = run.run(backend(), 0, 4, cotangent);
    const auto first = run.run(backend(), 0, 2, cotangent), second = run.run(backend(), 2, 4, cotangent);
    CHECK(whole.output.rows(0, 2).singles == first.output.singles);
    CHECK(whole.output.rows(2, 4).singles == second.output.singles);
    for (std::size_t i = 0; i < run.inputs().size(); ++i) {
      if (!is_floating(run.inputs()[i].dtype)) continue;
      CHECK(whole.input_gradients[i].rows(0, 2).singles == first.input_gradients[i].singles);
      CHECK(whole.input_gradients[i].rows(2, 4).singles == second.input_gradients[i].singles);
    }
    for (std::size_t i = 0; i < run.weights().size(); ++i) {
      std::vector<float> sum = first.weight_gradients[i].singles;
      for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += second.weight_gradients[i].singles[e];
      CHECK(sum == whole.weight_gradients[i].singles);
    }
  }
}

TEST_CASE("layers leave out gradients that nobody wants", "[layers][golden]") {
  for (const json& golden : cases()) {
    INFO(golden["name"]);
    LayerRun run = run_of(golden, DType::float32);
    const Array cotangent = Array::from_json(golden["output_gradient"], DType::float32);
    const auto all = run.run(backend(), 0, 4, cotangent);
    run.wants_input_gradients = false;
    const auto weights = run.run(backend(), 0, 4, cotangent);
    for (std::size_t i = 0; i < run.weights().size(); ++i)
      CHECK(weights.weight_gradients[i].singles == all.weight_gradients[i].singles);
    run.wants_input_gradients = true;
    run.wants_weight_gradients = false;
    const auto inputs = run.run(backend(), 0, 4, cotangent);
    for (std::size_t i = 0; i < run.inputs().size(); ++i) {
      if (is_floating(run.inputs()[i].dtype))
        CHECK(inputs.input_gradients[i].singles == all.input_gradients[i].singles);
    }
  }
}
