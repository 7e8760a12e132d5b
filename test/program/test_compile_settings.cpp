#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "runtime/error.hpp"
#include "tools/rankine/compile_settings.hpp"

using namespace rankine;
using Catch::Contains;
using nlohmann::json;

namespace {

CompileSettings compiled(const std::string& config, const CompileOverrides& overrides,
                         ModelCommand command = ModelCommand::train) {
  return compile_settings(config, overrides, command);
}

const std::string k_compiled = R"({
  "optimizer": {"module": "keras.optimizers", "class_name": "Adam",
                "config": {"learning_rate": 0.01, "beta_1": 0.9}, "registered_name": null},
  "loss": "mean_squared_error", "metrics": null})";

}  // namespace

TEST_CASE("without a job file the model's own compile config holds", "[program]") {
  const CompileSettings settings = compiled(k_compiled, {});
  CHECK(json::parse(settings.config) == json::parse(k_compiled));
  CHECK(settings.keeps_optimizer);
}

TEST_CASE("the job file replaces whole parts and single keys of the optimizer", "[program]") {
  const CompileSettings losses = compiled(k_compiled, {{"loss", "\"mae\""}, {"metrics", "[\"accuracy\"]"}});
  CHECK(losses.keeps_optimizer);
  CHECK(json::parse(losses.config)["loss"] == "mae");
  CHECK(json::parse(losses.config)["metrics"] == json{"accuracy"});

  const CompileSettings rate = compiled(k_compiled, {{"learning_rate", "0.5"}});
  CHECK_FALSE(rate.keeps_optimizer);
  CHECK(json::parse(rate.config)["optimizer"]["config"] == json{{"learning_rate", 0.5}, {"beta_1", 0.9}});

  const CompileSettings other = compiled(k_compiled, {{"optimizer", "\"sgd\""}, {"momentum", "0.9"}});
  CHECK_FALSE(other.keeps_optimizer);
  // As Keras writes it, so that Keras loads it.
  CHECK(json::parse(other.config)["optimizer"] == json{{"module", "keras.optimizers"},
                                                       {"class_name", "SGD"},
                                                       {"config", {{"momentum", 0.9}}},
                                                       {"registered_name", nullptr}});
}

TEST_CASE("a job file alone can compile a model", "[program]") {
  const CompileSettings settings =
      compiled("", {{"optimizer", "\"AdamW\""}, {"loss", "\"mse\""}, {"learning_rate", "0.1"}});
  CHECK(json::parse(settings.config)["optimizer"]["class_name"] == "AdamW");
  CHECK_THROWS_WITH(compiled("", {}), Contains("isn't compiled") && Contains("--config"));
  CHECK_THROWS_AS(compiled("", {}), ConfigError);
  CHECK_THROWS_WITH(compiled("", {{"optimizer", "\"adam\""}}), Contains("loss"));
  CHECK_THROWS_WITH(compiled("", {{"loss", "\"mse\""}, {"learning_rate", "0.1"}}),
                    Contains("'learning_rate'") && Contains("neither"));
}

TEST_CASE("keys that look misspelt are refused", "[program]") {
  CHECK_THROWS_WITH(compiled(k_compiled, {{"optimiser", "\"sgd\""}}),
                    Contains("'optimiser'; did you mean optimizer?"));
  CHECK_THROWS_AS(compiled(k_compiled, {{"losses", "\"mse\""}}), UsageError);
  CHECK_THROWS_AS(compiled(k_compiled, {{"optimizer", "\"adma\""}}), ConfigError);
  CHECK_THROWS_AS(compiled(k_compiled, {{"optimizer", "3"}}), UsageError);
}
