#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/describe.hpp"
#include "golden.hpp"
#include "runtime/error.hpp"

using namespace rankine;
using namespace rankine::test;
using Catch::Contains;

TEST_CASE("A model file is described with its layers, variables and optimizer", "[checkpoint]") {
  const auto d = describe_keras_file(golden("tiny_gpt", "final.keras"));
  CHECK(d.kind == "Keras model");
  CHECK(d.model_name == "tiny_gpt");
  CHECK(d.keras_version == "3.15.1");
  REQUIRE(d.inputs.size() == 2);
  CHECK(d.inputs[0].dtype == "int32");
  CHECK(d.inputs[0].shape == Shape{16});
  REQUIRE(d.outputs.size() == 1);
  CHECK(d.outputs[0].shape == Shape{16, 101});
  const auto expected = nlohmann::json::parse(std::ifstream(golden("tiny_gpt", "expected.json")));
  CHECK(d.parameters == expected["parameters"].get<std::int64_t>());
  CHECK(d.trainable_parameters == d.parameters);
  CHECK(d.bytes == 4 * d.parameters);
  REQUIRE(d.variables.size() == expected["variables"].size());
  CHECK("/" + d.variables[5].structural_path == expected["variables"][5]["h5"].get<std::string>());
  std::int64_t parameters = 0;
  for (const LayerRow& layer : d.layers) parameters += layer.parameters;
  CHECK(parameters == d.parameters);
  CHECK(d.layers.front().class_name == "Embedding");
  CHECK(d.layers.front().parameters == 101 * 32);
  CHECK(d.optimizer.starts_with("AdamW("));
  CHECK_THAT(d.optimizer, Contains("weight_decay=0.01") && Contains("learning_rate=PolynomialDecay(") &&
                              Contains("initial_learning_rate=0.003") && !Contains("clipnorm"));
  CHECK(d.loss == "SparseCategoricalCrossentropy(from_logits=True)");
  CHECK(d.metrics.empty());
  CHECK(d.state_tensors == static_cast<std::int64_t>(expected["optimizer_variables"].size()));
  CHECK(d.iteration == 8);
  CHECK(d.refusal.empty());
}

TEST_CASE("Layers called twice count once", "[checkpoint]") {
  const auto d = describe_keras_file(golden("two_outputs", "model.keras"));
  int twice = 0;
  for (const LayerRow& layer : d.layers) twice += layer.calls == 2 ? 1 : 0;
  CHECK(twice == 1);
  CHECK(d.parameters == 1015);
  CHECK(d.outputs.size() == 2);
  CHECK_THAT(d.loss, Contains("label: SparseCategoricalCrossentropy") &&
                         Contains("value: MeanSquaredError") && Contains("weights {label: 1, value: 0.3}"));
  CHECK_THAT(d.metrics, Contains("accuracy"));
}

TEST_CASE("Weights files and configs are described as far as they go", "[checkpoint]") {
  const auto weights = describe_keras_file(golden("nested", "final.weights.h5"));
  CHECK(weights.kind == "Keras weights");
  CHECK(weights.model_name == "nested");
  CHECK(weights.layers.empty());
  CHECK(weights.optimizer == "sgd");
  CHECK(weights.iteration == 8);
  CHECK(weights.variables.front().path == "to_left");

  const auto sharded = describe_keras_file(golden("sharded", "final_sharded/final.weights.json"));
  CHECK(sharded.variables.size() == 8);
  CHECK(sharded.bytes + sharded.state_bytes == 169812);

  const auto config = describe_keras_file(golden("nested", "model.json"));
  CHECK(config.kind == "Keras config");
  CHECK(config.parameters == weights.parameters);
  CHECK(config.state_tensors == 0);
  CHECK_FALSE(config.iteration);
}

TEST_CASE("A model that isn't supported is described with the reason", "[checkpoint]") {
  const TemporaryFolder folder;
  std::ofstream(folder / "m.json")
      << R"({"module": "keras", "class_name": "Sequential", "config": {"name": "s", "layers": [
    {"module": "keras.layers", "class_name": "InputLayer", "config": {"batch_shape": [null, 4], "dtype": "float32", "name": "x"}},
    {"module": "keras.layers", "class_name": "GRU", "config": {"name": "memory", "units": 3}}]}})";
  const auto d = describe_keras_file(folder / "m.json");
  CHECK(d.model_name == "s");
  CHECK_THAT(d.refusal, Contains("GRU"));
  CHECK_THAT(to_text(d), Contains("This model can't be trained here:"));
  CHECK_THROWS_AS(describe_keras_file(folder / "none.keras"), CheckpointError);
  CHECK_THROWS_AS(describe_keras_file(folder / "none.json"), CheckpointError);
}

TEST_CASE("The text of a description is a table that people can read", "[checkpoint]") {
  auto d = describe_keras_file(golden("mlp_sgd", "final.keras"));
  d.path = "final.keras";
  d.date_saved = "";
  CHECK(to_text(d) == R"(final.keras: Keras model "mlp", format of Keras 3.15.1
inputs     x float32 (32,)
outputs    y float32 (10,)

layer     class  output of a sample  parameters
-----------------------------------------------
hidden_1  Dense  (64,)                    2,112
hidden_2  Dense  (32,)                    2,080
logits    Dense  (10,)                      330

variable             place in the weights file  shape     dtype    bytes
------------------------------------------------------------------------
mlp/hidden_1/kernel  layers/dense/vars/0        (32, 64)  float32  8,192
mlp/hidden_1/bias    layers/dense/vars/1        (64,)     float32    256
mlp/hidden_2/kernel  layers/dense_1/vars/0      (64, 32)  float32  8,192
mlp/hidden_2/bias    layers/dense_1/vars/1      (32,)     float32    128
mlp/logits/kernel    layers/dense_2/vars/0      (32, 10)  float32  1,280
mlp/logits/bias      layers/dense_2/vars/1      (10,)     float32     40

total      4,522 parameters in 6 variables, 17.7 KiB
optimizer  SGD(learning_rate=0.05, momentum=0.9, nesterov=True)
state      8 tensors, 17.7 KiB, iteration 8
loss       SparseCategoricalCrossentropy(from_logits=True)
)");
}
