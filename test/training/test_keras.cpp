// One rank against Keras: forward, losses, gradients, weights, slots and resumed steps of every golden model,
// within the tolerances that test/golden/README.md derives.
#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/mesh/self_communicator.hpp"
#include "test/training/golden_facts.hpp"

using namespace rankine;
using namespace rankine::testing;
using Json = nlohmann::json;

namespace {

/// Golden models of which only the first step is compared, since their optimizer isn't here.
const std::vector<std::string> k_first_step = {"mlp_lion", "odd", "embedding_bag"};

Json expectation(const std::string& fixture) {
  return golden_json(fixture, "expected.json");
}

void check_forward(const std::string& fixture, const Json& expected, const std::string& weights,
                   const std::string& group) {
  const auto outputs = predict_fixture(fixture, weights);
  REQUIRE(outputs.size() == expected["outputs"].size());
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const auto keras =
        golden_array(fixture, "expected.h5", group + "/" + expected["outputs"][o]["name"].get<std::string>());
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
    const auto index = variable["gradient_index"].get<std::size_t>();
    INFO("gradient of " << variable["path"]);
    const auto keras = golden_array(fixture, "expected.h5", "gradients", index);
    const auto& ours = run.first_gradients[variable["index"].get<std::size_t>()];
    CHECK(difference(ours, keras).largest <= expected["tolerance"]["gradients"][index].get<double>());
  }
}

/// How many of Keras's own spreads (README.md) a figure of a float32 run may be from Keras's.
constexpr double k_spreads = 3.0;

/// Final weights for which the fixture's tolerance is a lucky draw that Keras itself doesn't repeat
/// (README.md): these alone are bounded by spreads.
const std::set<std::pair<std::string, std::string>> k_lucky = {{"tiny_gpt", "logits/kernel"}};

void check_final_weights(const std::string& fixture, const Json& expected, const Json& spread,
                         const RunResult& run) {
  for (std::size_t i = 0; i < run.weights.size(); ++i) {
    INFO("final " << run.weight_paths[i]);
    const Difference d = difference(run.weights[i], golden_array(fixture, "expected.h5", "final", i));
    const bool lucky = k_lucky.contains({fixture, run.weight_paths[i]});
    const auto bound = [&](const char* what) {
      return lucky ? k_spreads * spread[what][i].get<double>() : expected["tolerance"][what][i].get<double>();
    };
    CHECK(d.largest <= bound("final"));
    CHECK(d.rms <= bound("final_rms"));
  }
}

/// What a spread doesn't have in it with sample weights, relative to the largest element: Keras's factors of
/// a loss are the same in all runs and are rounded three times (README.md).
double shared_rounding(const std::string& fixture) {
  constexpr double k_unit = 0x1p-24;
  return fixture == "weighted" || fixture == "ignored" ? 3 * k_unit : 0.0;
}

/// The fixtures give no tolerance for optimizer variables. Counters have no spread.
void check_slots(const std::string& fixture, const Json& expected, const Json& spread, const RunResult& run) {
  const Json& slots = expected["optimizer_variables"];
  REQUIRE(run.optimizer_state.size() == slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    INFO("slot " << slots[i]["path"]);
    const std::vector<double> keras = golden_array(fixture, "expected.h5", "optimizer", i);
    const Difference d = difference(run.optimizer_state[i], keras);
    const double shared = shared_rounding(fixture) * largest(keras);
    CHECK(d.largest <= k_spreads * spread["optimizer"][i].get<double>() + shared);
    CHECK(d.rms <= k_spreads * spread["optimizer_rms"][i].get<double>() + shared);
  }
}

}  // namespace

TEST_CASE("golden models train as in Keras", "[keras]") {
  for (const std::string& fixture : trained_fixtures()) {
    DYNAMIC_SECTION(fixture) {
      const Json expected = expectation(fixture);
      check_forward(fixture, expected, "initial", "forward");
      check_forward(fixture, expected, "final", "forward_after");
      SelfCommunicator alone("one rank");
      const RunResult run = run_fixture(alone, fixture, options_for(fixture));
      check_first_step(fixture, expected, run);
      for (std::size_t step = 0; step < 8; ++step) {
        INFO("step " << step + 1);
        CHECK(std::abs(run.losses[step] - expected["loss"][step].get<double>()) <=
              expected["tolerance"]["loss"].get<double>());
        const double rate = expected["learning_rate"][step].get<double>();
        CHECK(std::abs(run.learning_rates[step] - rate) <= 2e-7 * rate);
      }
      const Json spread = golden_json(fixture, "spread.json");
      check_final_weights(fixture, expected, spread, run);
      check_slots(fixture, expected, spread, run);
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
  for (const std::string& fixture : trained_fixtures()) {
    const Json expected = expectation(fixture);
    if (expected.contains("dropout")) continue;  // masks depend on the step, which is a checkpoint's to give
    DYNAMIC_SECTION(fixture) {
      RunOptions options;
      options.steps = 2;
      options.weights = "final";
      SelfCommunicator alone("one rank");
      const RunResult run = run_fixture(alone, fixture, options);
      const Json spread = golden_json(fixture, "spread.json");
      for (std::size_t step = 0; step < 2; ++step) {
        CHECK(std::abs(run.losses[step] - expected["resume"]["loss"][step].get<double>()) <=
              expected["tolerance"]["loss"].get<double>());
        const double rate = expected["resume"]["learning_rate"][step].get<double>();
        CHECK(std::abs(run.learning_rates[step] - rate) <= 2e-7 * rate);
      }
      for (std::size_t i = 0; i < run.weights.size(); ++i) {
        double squares = 0.0;
        for (const double w : run.weights[i]) squares += w * w;
        const double norm = expected["resume"]["weights_l2"][i].get<double>();
        INFO(run.weight_paths[i]);
        const double movable =
            std::sqrt(static_cast<double>(run.weights[i].size()));  // of the norm, by an rms
        const double summed = 1e-14 * norm;  // both norms are sums of doubles; frozen weights have no spread
        CHECK(std::abs(std::sqrt(squares) - norm) <=
              movable * k_spreads * spread["final_rms"][i].get<double>() + summed);
      }
    }
  }
}
