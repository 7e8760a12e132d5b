// One rank against Keras: forward, losses, gradients, weights, slots and resumed steps of every golden model,
// within the tolerances that test/golden/README.md derives.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/hdf5/hdf5_file.hpp"
#include "runtime/mesh/self_communicator.hpp"
#include "test/training/fixture_run.hpp"

using namespace rankine;
using namespace rankine::testing;
using Json = nlohmann::json;

namespace {

/// Golden models whose optimizer is here, and those of which only the first step is compared.
const std::vector<std::string> k_whole = {"mlp_sgd",      "mlp_adam_cosine", "einsum",  "tiny_gpt",    "gqa",
                                          "nested",       "sharded",         "dropout", "two_outputs", "text",
                                          "probabilities"};
const std::vector<std::string> k_first_step = {"mlp_lion", "odd", "embedding_bag"};

Json expectation(const std::string& fixture) {
  std::ifstream file(golden(fixture + "/expected.json"));
  return Json::parse(file);
}

std::vector<double> golden_array(const std::string& fixture, const std::string& path) {
  const hdf5::File file = hdf5::open_file(golden(fixture + "/expected.h5"));
  const hdf5::Dataset dataset = hdf5::open_dataset(file.get(), path);
  const Shape shape = hdf5::info_of(dataset).shape;
  std::vector<double> values(static_cast<std::size_t>(shape.elements()));
  hdf5::read_all(dataset, Tensor{values.data(), DType::float64, shape});
  return values;
}

std::string numbered(const std::string& group, int index) {
  char text[32];
  std::snprintf(text, sizeof text, "%s/%03d", group.c_str(), index);
  return text;
}

struct Difference {
  double largest = 0.0;
  double rms = 0.0;
};

Difference difference(const std::vector<double>& ours, const std::vector<double>& keras) {
  REQUIRE(ours.size() == keras.size());
  Difference d;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double e = std::abs(ours[i] - keras[i]);
    d.largest = std::isnan(e) ? INFINITY : std::max(d.largest, e);
    d.rms += e * e;
  }
  d.rms = std::sqrt(d.rms / static_cast<double>(std::max<std::size_t>(ours.size(), 1)));
  return d;
}

double largest(const std::vector<double>& values) {
  double most = 0.0;
  for (const double v : values) most = std::max(most, std::abs(v));
  return most;
}

RunOptions options_for(const std::string& fixture, const Json& expected) {
  RunOptions options;
  if (fixture == "dropout") options.seed = expected["dropout"]["seed"].get<std::uint64_t>();
  return options;
}

void check_forward(const std::string& fixture, const Json& expected, const std::string& weights,
                   const std::string& group) {
  const auto outputs = predict_fixture(fixture, weights);
  REQUIRE(outputs.size() == expected["outputs"].size());
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const auto keras = golden_array(fixture, group + "/" + expected["outputs"][o]["name"].get<std::string>());
    CHECK(difference(outputs[o], keras).largest <= expected["tolerance"]["forward"].get<double>());
  }
}

void check_first_step(const std::string& fixture, const Json& expected, const RunResult& run) {
  CHECK(std::abs(run.losses[0] - expected["loss"][0].get<double>()) <=
        expected["tolerance"]["loss"].get<double>());
  const double norm = expected["first_gradient_global_norm"].get<double>();
  CHECK(std::abs(run.gradient_norms[0] - norm) <= 1e-6 * norm + 1e-7);
  for (const Json& variable : expected["variables"]) {
    if (variable["gradient_index"].is_null()) continue;
    const int index = variable["gradient_index"].get<int>();
    INFO("gradient of " << variable["path"]);
    const auto keras = golden_array(fixture, numbered("gradients", index));
    const auto& ours = run.first_gradients[variable["index"].get<std::size_t>()];
    CHECK(difference(ours, keras).largest <=
          expected["tolerance"]["gradients"][static_cast<std::size_t>(index)].get<double>());
  }
}

bool has_zero_gradient(const Json& expected, const std::string& path) {
  const Json& zero = expected["float64"]["zero_gradient_variables"];
  return std::find(zero.begin(), zero.end(), Json(path)) != zero.end();
}

/// After 8 steps of Adam both runs have drifted from the exact one, each in its own way. The fixtures'
/// tolerances come from Keras's drift alone; two independent drifts may lie on opposite sides.
constexpr double k_both_drift = 2.0;

void check_weights(const std::string& fixture, const Json& expected, const RunResult& run) {
  for (std::size_t i = 0; i < run.weights.size(); ++i) {
    INFO("final " << run.weight_paths[i]);
    const Difference d =
        difference(run.weights[i], golden_array(fixture, numbered("final", static_cast<int>(i))));
    CHECK(d.largest <= k_both_drift * expected["tolerance"]["final"][i].get<double>());
    CHECK(d.rms <= k_both_drift * expected["tolerance"]["final_rms"][i].get<double>());
  }
}

/// The fixtures give no tolerance for slots: they are sums of gradients, so a slot may differ from Keras's by
/// a hundred-thousandth of its largest element, counters and rates not at all.
void check_slots(const std::string& fixture, const Json& expected, const RunResult& run) {
  const Json& slots = expected["optimizer_variables"];
  REQUIRE(run.optimizer_state.size() == slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const auto path = slots[i]["path"].get<std::string>();
    INFO("slot " << path);
    // Slots of a variable whose true gradient is zero hold rounding noise.
    bool noise = false;
    for (std::size_t v = 0; v < run.weights.size(); ++v) {
      std::string flat = run.weight_paths[v];
      std::replace(flat.begin(), flat.end(), '/', '_');
      noise =
          noise || (has_zero_gradient(expected, run.weight_paths[v]) && path.find(flat) != std::string::npos);
    }
    const auto keras = golden_array(fixture, numbered("optimizer", static_cast<int>(i)));
    const double bound = noise ? 1e-6 : keras.size() == 1 && i < 2 ? 0.0 : 1e-4 * largest(keras);
    CHECK(difference(run.optimizer_state[i], keras).largest <= bound);
  }
}

}  // namespace

TEST_CASE("golden models train as in Keras", "[keras]") {
  for (const std::string& fixture : k_whole) {
    DYNAMIC_SECTION(fixture) {
      const Json expected = expectation(fixture);
      check_forward(fixture, expected, "initial", "forward");
      check_forward(fixture, expected, "final", "forward_after");
      SelfCommunicator alone("one rank");
      const RunResult run = run_fixture(alone, fixture, options_for(fixture, expected));
      check_first_step(fixture, expected, run);
      for (std::size_t step = 0; step < 8; ++step) {
        INFO("step " << step + 1);
        CHECK(std::abs(run.losses[step] - expected["loss"][step].get<double>()) <=
              expected["tolerance"]["loss"].get<double>());
        const double rate = expected["learning_rate"][step].get<double>();
        CHECK(std::abs(run.learning_rates[step] - rate) <= 2e-7 * rate);
      }
      check_weights(fixture, expected, run);
      check_slots(fixture, expected, run);
    }
  }
}

TEST_CASE("golden models with another optimizer begin as in Keras", "[keras]") {
  for (const std::string& fixture : k_first_step) {
    DYNAMIC_SECTION(fixture) {
      const Json expected = expectation(fixture);
      check_forward(fixture, expected, "initial", "forward");
      check_forward(fixture, expected, "final", "forward_after");
      RunOptions options;
      options.steps = 1;
      options.optimizer = "sgd";
      SelfCommunicator alone("one rank");
      check_first_step(fixture, expected, run_fixture(alone, fixture, options));
    }
  }
}

TEST_CASE("training goes on from Keras's weights and optimizer", "[keras]") {
  for (const std::string& fixture : k_whole) {
    if (fixture == "dropout") continue;  // its masks depend on the step, which is a checkpoint's to give
    DYNAMIC_SECTION(fixture) {
      const Json expected = expectation(fixture);
      RunOptions options;
      options.steps = 2;
      options.weights = "final";
      SelfCommunicator alone("one rank");
      const RunResult run = run_fixture(alone, fixture, options);
      for (std::size_t step = 0; step < 2; ++step) {
        CHECK(std::abs(run.losses[step] - expected["resume"]["loss"][step].get<double>()) <=
              2 * expected["tolerance"]["loss"].get<double>());
        const double rate = expected["resume"]["learning_rate"][step].get<double>();
        CHECK(std::abs(run.learning_rates[step] - rate) <= 2e-7 * rate);
      }
      for (std::size_t i = 0; i < run.weights.size(); ++i) {
        double squares = 0.0;
        for (const double w : run.weights[i]) squares += w * w;
        const double norm = expected["resume"]["weights_l2"][i].get<double>();
        INFO(run.weight_paths[i]);
        const double movable = std::sqrt(static_cast<double>(run.weights[i].size()));
        CHECK(std::abs(std::sqrt(squares) - norm) <=
              2 * movable * expected["tolerance"]["final"][i].get<double>() + 1e-6 * norm);
      }
    }
  }
}
