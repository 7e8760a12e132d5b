#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/model/model.hpp"
#include "test/model/golden_file.hpp"

using namespace rankine;
using nlohmann::json;

namespace {

Shape shape_of(const json& sizes) {
  return Shape(sizes.get<std::vector<std::int64_t>>());
}

/// A graph is sound when every call comes after what it needs and every value has one maker.
void check_graph(const Model& model) {
  const Graph& graph = model.graph();
  std::vector<bool> made(graph.values.size(), false);
  REQUIRE(graph.inputs.size() == model.input_names().size());
  REQUIRE(graph.outputs.size() == model.output_names().size());
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    CHECK(graph.inputs[i] == static_cast<int>(i));
    made[i] = true;
  }
  for (std::size_t c = 0; c < graph.calls.size(); ++c) {
    const GraphCall& call = graph.calls[c];
    REQUIRE(call.layer != nullptr);
    std::vector<ValueSpec> specs;
    for (const int input : call.inputs) {
      CHECK(made[static_cast<std::size_t>(input)]);
      specs.push_back(graph.values[static_cast<std::size_t>(input)].spec);
    }
    const auto output = static_cast<std::size_t>(call.output);
    CHECK_FALSE(made[output]);
    made[output] = true;
    CHECK(graph.values[output].producer == static_cast<int>(c));
    CHECK(graph.values[output].spec == call.layer->output(specs));
    for (const int variable : call.variables)
      CHECK((variable >= 0 && variable < static_cast<int>(model.variables().size())));
  }
  for (const int output : graph.outputs) CHECK(made[static_cast<std::size_t>(output)]);
}

}  // namespace

TEST_CASE("fixtures have Keras's variables", "[model][fixtures]") {
  const std::string fixture = GENERATE(
      "mlp_sgd", "mlp_adam_cosine", "mlp_lion", "einsum", "tiny_gpt", "gqa", "nested", "odd", "embedding_bag",
      "sharded", "dropout", "probabilities", "text", "two_outputs", "everyday", "reversible", "masked");
  CAPTURE(fixture);
  const Model model = Model::from_config(golden_text(fixture + "/model.json"));
  const json expected = golden_json(fixture + "/expected.json");
  const json& table = expected["variables"];
  REQUIRE(model.variables().size() == table.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    const Variable& variable = model.variables()[i];
    CAPTURE(i, variable.path);
    CHECK(variable.ordinal == static_cast<int>(i));
    CHECK(variable.path == table[i]["path"]);
    CHECK("/" + variable.structural_path == table[i]["h5"]);
    CHECK(variable.shape == shape_of(table[i]["shape"]));
    CHECK(name_of(variable.dtype) == table[i]["dtype"]);
    CHECK(variable.trainable == table[i]["trainable"]);
  }
  check_graph(model);

  // Inputs: [steps, batch, sample…]; outputs: [batch, sample…].
  std::map<std::string, json> inputs, outputs;
  for (const json& input : expected["inputs"]) inputs[input["name"]] = input;
  for (const json& output : expected["outputs"]) outputs[output["name"]] = output;
  REQUIRE(inputs.size() == model.input_names().size());
  REQUIRE(outputs.size() == model.output_names().size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const json& input = inputs.at(model.input_names()[i]);
    const ValueSpec& spec = model.graph().values[i].spec;
    CHECK(spec.shape.with_leading(input["shape"][1]).with_leading(input["shape"][0]) ==
          shape_of(input["shape"]));
    CHECK(name_of(spec.dtype) == input["dtype"]);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const json& output = outputs.at(model.output_names()[i]);
    const auto value = static_cast<std::size_t>(model.graph().outputs[i]);
    CHECK(model.graph().values[value].spec.shape.with_leading(output["shape"][0]) ==
          shape_of(output["shape"]));
  }
}

TEST_CASE("layers are ordered and grouped as Keras does it", "[model][structure]") {
  const json models = golden_json("structure/structure.json");
  REQUIRE(models.size() >= 25);
  for (const json& expected : models) {
    const std::string name = expected["name"];
    CAPTURE(name);
    const Model model = Model::from_config(expected["config"].dump());
    check_graph(model);
    CHECK(model.input_names() == expected["inputs"].get<std::vector<std::string>>());
    REQUIRE(model.graph().outputs.size() == expected["outputs"].size());
    for (std::size_t i = 0; i < model.graph().outputs.size(); ++i) {
      const auto value = static_cast<std::size_t>(model.graph().outputs[i]);
      CHECK(model.graph().values[value].spec.shape == shape_of(expected["outputs"][i]));
    }
    REQUIRE(model.variables().size() == expected["weights"].size());
    for (std::size_t i = 0; i < model.variables().size(); ++i) {
      const Variable& variable = model.variables()[i];
      CAPTURE(i, variable.path);
      CHECK(variable.structural_path == expected["weights"][i]["path"]);
      CHECK(variable.shape == shape_of(expected["weights"][i]["shape"]));
      CHECK(variable.trainable == expected["weights"][i]["trainable"]);
    }
    std::map<std::string, std::string> groups;
    for (const SaveGroup& group : model.save_groups())
      groups[group.path.empty() ? "vars" : group.path + "/vars"] = group.name;
    CHECK(groups.size() == model.save_groups().size());
    CHECK(groups.size() == expected["groups"].size());
    for (const auto& [path, group_name] : expected["groups"].items()) {
      CAPTURE(path);
      REQUIRE(groups.count(path) == 1);
      // The names of sublayers that have none of their own count all models of a session.
      if (path.find("/_") == std::string::npos) CHECK(groups[path] == group_name);
    }
  }
}

TEST_CASE("a shared nested model is unfolded, its variables kept once", "[model]") {
  const Model model = Model::from_config(golden_text("nested/model.json"));
  std::vector<const GraphCall*> calls;
  for (const GraphCall& call : model.graph().calls)
    if (call.path == "encoder/encoder_dense") calls.push_back(&call);
  REQUIRE(calls.size() == 2);
  CHECK(calls[0]->layer == calls[1]->layer);
  CHECK(calls[0]->variables == calls[1]->variables);
  CHECK(calls[0]->inputs != calls[1]->inputs);
}

TEST_CASE("call arguments are read", "[model]") {
  const Model model = Model::from_config(golden_text("tiny_gpt/model.json"));
  int causal = 0;
  for (const GraphCall& call : model.graph().calls) causal += call.arguments.use_causal_mask ? 1 : 0;
  CHECK(causal == 2);
  CHECK(model.rows_per_sample() == 16);
}

TEST_CASE("the compile config is kept and can be replaced", "[model]") {
  const json original = golden_json("two_outputs/model.json");
  Model model = Model::from_config(original.dump());
  CHECK(json::parse(model.compile_config()) == original["compile_config"]);
  const json compile = golden_json("mlp_sgd/compile.json");
  model.set_compile_config(compile.dump());
  CHECK(json::parse(model.compile_config()) == compile);
  const json now = json::parse(model.config());
  CHECK(now["compile_config"] == compile);
  CHECK(now["config"] == original["config"]);
  const Model again = Model::from_config(model.config());
  CHECK(again.variables().size() == model.variables().size());

  json uncompiled = original;
  uncompiled["compile_config"] = json::object();
  CHECK(Model::from_config(uncompiled.dump()).compile_config().empty());
  uncompiled.erase("compile_config");
  CHECK(Model::from_config(uncompiled.dump()).compile_config().empty());
  CHECK_THROWS(model.set_compile_config("[1"));
}

TEST_CASE("a float64 policy makes float64 variables", "[model]") {
  std::string text = golden_text("mlp_lion/model.json");
  for (std::size_t at; (at = text.find("float32")) != std::string::npos;) text.replace(at, 7, "float64");
  const Model model = Model::from_config(text);
  for (const Variable& variable : model.variables()) CHECK(variable.dtype == DType::float64);
  for (const GraphValue& value : model.graph().values) CHECK(value.spec.dtype == DType::float64);
}

TEST_CASE("old and minimal configs are read", "[model]") {
  SECTION("lists of lists, without modules") {
    const Model model = Model::from_config(R"({"class_name": "Functional", "config": {"name": "m", "layers": [
      {"class_name": "InputLayer", "name": "a", "config": {"batch_input_shape": [null, 4], "name": "a"},
       "inbound_nodes": []},
      {"class_name": "Dense", "name": "d", "config": {"name": "d", "units": 3}, "inbound_nodes": [[["a", 0, 0, {}]]]},
      {"class_name": "Dropout", "name": "r", "config": {"name": "r", "rate": 0.1},
       "inbound_nodes": [[["d", 0, 0, {"training": true}]]]},
      {"class_name": "Add", "name": "s", "config": {"name": "s"},
       "inbound_nodes": [[["d", 0, 0, {}], ["r", 0, 0, {}]]]}],
      "input_layers": [["a", 0, 0]], "output_layers": [["s", 0, 0]]}})");
    CHECK(model.graph().calls.size() == 3);
    CHECK(model.variables().size() == 2);
    CHECK(model.output_names() == std::vector<std::string>{"y"});
  }
  SECTION("a Sequential that only knows what it was built for") {
    for (const char* place : {R"("build_input_shape": [null, 4])", R"("x": null)"}) {
      const std::string outside = std::string(place) == R"("x": null)"
                                      ? R"("build_config": {"input_shape": [null, 4]})"
                                      : R"("build_config": {})";
      const Model model = Model::from_config(R"({"class_name": "Sequential", "config": {"name": "s", )" +
                                             std::string(place) + R"(, "layers": [
        {"class_name": "Dense", "module": "keras.layers", "config": {"name": "d", "units": 3}},
        {"class_name": "Dense", "module": "keras.layers", "config": {"name": "e", "units": 2}}]}, )" +
                                             outside + "}");
      CHECK(model.input_names() == std::vector<std::string>{"x"});
      REQUIRE(model.variables().size() == 4);
      CHECK(model.variables()[2].structural_path == "layers/dense_1/vars/0");
      CHECK(model.variables()[0].shape == Shape{4, 3});
    }
  }
  SECTION("frozen layers and frozen models") {
    json config = golden_json("mlp_lion/model.json");
    config["config"]["layers"][1]["config"]["trainable"] = false;
    const Model one = Model::from_config(config.dump());
    CHECK_FALSE(one.variables()[0].trainable);
    CHECK_FALSE(one.variables()[1].trainable);
    CHECK(one.variables()[2].trainable);
    config["config"]["trainable"] = false;
    const Model none = Model::from_config(config.dump());
    for (const Variable& variable : none.variables()) CHECK_FALSE(variable.trainable);
  }
}
