#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <random>

#include "runtime/error.hpp"
#include "runtime/model/model.hpp"
#include "test/model/golden_file.hpp"

using namespace rankine;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

json tensor(const char* layer, int node = 0, int index = 0) {
  return {{"class_name", "__keras_tensor__"}, {"config", {{"keras_history", {layer, node, index}}}}};
}

json layer(const char* class_name, const char* name, json config, json arguments,
           json keywords = json::object()) {
  config["name"] = name;
  json entry = {
      {"module", "keras.layers"},    {"class_name", class_name},   {"name", name},
      {"config", std::move(config)}, {"registered_name", nullptr}, {"inbound_nodes", json::array()}};
  if (!arguments.empty())
    entry["inbound_nodes"].push_back({{"args", std::move(arguments)}, {"kwargs", std::move(keywords)}});
  return entry;
}

json input(const char* name, json shape = {nullptr, 4}) {
  return layer("InputLayer", name, {{"batch_shape", std::move(shape)}, {"dtype", "float32"}}, json::array());
}
json dense(const char* name, const char* from, int units = 4) {
  return layer("Dense", name, {{"units", units}}, json::array({tensor(from)}));
}

json node(const std::string& from, int call = 0) {
  return {{"args", json::array({tensor(from.c_str(), call)})}, {"kwargs", {{"mask", nullptr}}}};
}

json functional(const char* name, json layers, json inputs, json outputs) {
  return {{"module", "keras"},
          {"class_name", "Functional"},
          {"name", name},
          {"config",
           {{"name", name},
            {"layers", std::move(layers)},
            {"input_layers", std::move(inputs)},
            {"output_layers", std::move(outputs)}}}};
}

/// x -> the given layers -> the last of them.
json model(std::vector<json> layers) {
  const std::string last = layers.back()["name"];
  layers.insert(layers.begin(), input("x"));
  return functional("m", layers, {"x", 0, 0}, {last, 0, 0});
}

std::string refusal(const std::string& text) {
  try {
    (void)Model::from_config(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was refused";
}
std::string refusal(const json& config) {
  return refusal(config.dump());
}

}  // namespace

TEST_CASE("the builders of these tests make models that are read", "[model][refusals]") {
  CHECK(Model::from_config(model({dense("a", "x"), dense("b", "a")}).dump()).graph().calls.size() == 2);
}

TEST_CASE("all unsupported layers are named in one message", "[model][refusals]") {
  json inner =
      functional("inner", {input("i"), layer("LSTM", "memory", json::object(), json::array({tensor("i")}))},
                 {"i", 0, 0}, {"memory", 0, 0});
  inner["inbound_nodes"] = json::array({node("a")});
  json op = layer("Erfinv", "plus", json::object(), json::array({tensor("inner"), 1.0}));
  op["module"] = "keras.src.ops.math";
  op["registered_name"] = "Erfinv";
  json custom = layer("Mine", "mine", json::object(), json::array({tensor("plus")}));
  custom["module"] = nullptr;
  custom["registered_name"] = "package>Mine";
  json low = dense("low", "mine");
  low["config"]["dtype"] = {{"class_name", "DTypePolicy"}, {"config", {{"name", "mixed_bfloat16"}}}};
  json regular = dense("regular", "low");
  regular["config"]["kernel_regularizer"] = {{"class_name", "OrthogonalRegularizer"}};
  const std::string text = refusal(model({dense("a", "x"), inner, op, custom, low, regular}));
  CHECK_THAT(text, Contains("inner/memory (LSTM)"));
  CHECK_THAT(text, Contains("plus (Erfinv of keras.src.ops.math): an operation"));
  CHECK_THAT(text, Contains("mine (package>Mine of no module)"));
  CHECK_THAT(text, Contains("low: ") && Contains("mixed_bfloat16") && Contains("float32 and float64"));
  CHECK_THAT(text, Contains("regular: ") && Contains("kernel_regularizer") &&
                       Contains("'OrthogonalRegularizer' isn't supported; supported are L1, L2, L1L2"));
  CHECK_THAT(text, Contains("Supported layers are InputLayer, "));
  for (const LayerKind& kind : layer_kinds()) CHECK_THAT(text, Contains(std::string(kind.class_name)));
  for (const LayerKind& kind : operation_kinds()) CHECK_THAT(text, Contains(std::string(kind.class_name)));
}

TEST_CASE("a mixed policy is refused by name", "[model][refusals][fixtures]") {
  CHECK_THAT(refusal(golden_text("mixed_bf16/model.json")),
             Contains("mixed_bfloat16") && Contains("float64") && !Contains("Supported layers"));
}

TEST_CASE("what isn't a model is refused", "[model][refusals]") {
  CHECK_THAT(refusal(std::string("")), Contains("isn't valid JSON"));
  CHECK_THAT(refusal(std::string("{\"class_name\": ")), Contains("isn't valid JSON"));
  CHECK_THAT(refusal(std::string("[]")), Contains("JSON object"));
  CHECK_THAT(refusal(std::string("{}")), Contains("JSON object"));
  CHECK_THAT(refusal(R"({"class_name": "Functional", "config": []})"_json), Contains("JSON object"));
  CHECK_THAT(refusal(R"({"class_name": "Mine", "config": {}})"_json),
             Contains("'Mine'") && Contains("Sequential"));
  CHECK_THAT(refusal(R"({"class_name": "Functional", "config": {"name": "m"}})"_json),
             Contains("has no layers"));
  CHECK_THAT(refusal(R"({"class_name": "Sequential", "config": {"name": "m", "layers": []}})"_json),
             Contains("'m' has no layers"));
  CHECK_THAT(refusal(R"({"class_name": "Sequential", "config": {"name": "m", "layers": [3]}})"_json),
             Contains("isn't an object with class_name"));
  json only_input = functional("m", json::array({input("x")}), {"x", 0, 0}, {"x", 0, 0});
  CHECK_THAT(refusal(only_input), Contains("computes nothing"));
  json sequential = {{"class_name", "Sequential"},
                     {"config", {{"name", "m"}, {"layers", json::array({input("x")})}}}};
  CHECK_THAT(refusal(sequential), Contains("no layers besides its input"));
  sequential["config"]["layers"] = json::array({dense("a", "x")});
  CHECK_THAT(refusal(sequential), Contains("keras.Input"));
  sequential["config"]["layers"] = {input("x"), dense("a", "x"), input("again")};
  CHECK_THAT(refusal(sequential), Contains("'again'"));
}

TEST_CASE("broken graphs are refused", "[model][refusals]") {
  SECTION("names used twice") {
    CHECK_THAT(refusal(model({dense("a", "x"), dense("a", "x")})), Contains("two layers named 'a'"));
  }
  SECTION("unknown layers") {
    CHECK_THAT(refusal(model({dense("a", "nowhere")})), Contains("'a' (Dense)") && Contains("'nowhere'"));
    json other = model({dense("a", "x")});
    other["config"]["output_layers"] = {"b", 0, 0};
    CHECK_THAT(refusal(other), Contains("output_layers") && Contains("'b'"));
  }
  SECTION("calls and outputs that aren't there") {
    CHECK_THAT(
        refusal(model({dense("a", "x"), layer("Dense", "b", {{"units", 2}}, json::array({tensor("a", 1)}))})),
        Contains("call 1 of layer 'a'"));
    CHECK_THAT(refusal(model(
                   {dense("a", "x"), layer("Dense", "b", {{"units", 2}}, json::array({tensor("a", 0, 1)}))})),
               Contains("output 1 of layer 'a'"));
    CHECK_THAT(refusal(model(
                   {dense("a", "x"), layer("Dense", "b", {{"units", 2}}, json::array({tensor("a", -1)}))})),
               Contains("-1"));
    CHECK_THAT(refusal(model({layer("Dense", "b", {{"units", 2}}, json::array())})),
               Contains("never calls") && Contains("'b'"));
  }
  SECTION("loops") {
    CHECK_THAT(refusal(model({dense("a", "b"), dense("b", "a")})), Contains("loop"));
    CHECK_THAT(refusal(model({dense("a", "a")})), Contains("loop through layer 'a'"));
  }
  SECTION("what leads nowhere") {
    CHECK_THAT(refusal(model({dense("unused", "x"), dense("a", "x")})),
               Contains("'unused'") && Contains("no output"));
    json twice = dense("a", "x");
    twice["inbound_nodes"].push_back(twice["inbound_nodes"][0]);
    CHECK_THAT(refusal(model({twice})), Contains("'a', whose call 1"));
  }
  SECTION("inputs") {
    json other = functional(
        "m",
        {input("x"), input("z"),
         layer("Add", "a", json::object(), json::array({json::array({tensor("x"), tensor("z")})}))},
        {"x", 0, 0}, {"a", 0, 0});
    CHECK_THAT(refusal(other), Contains("InputLayer 'z'"));
    other["config"]["input_layers"] = {{"x", 0, 0}, {"z", 0, 0}, {"x", 0, 0}};
    CHECK_THAT(refusal(other), Contains("twice"));
    other["config"]["input_layers"] = {{"x", 0, 0}, {"a", 0, 0}};
    CHECK_THAT(refusal(other), Contains("'a'") && Contains("isn't an InputLayer"));
    other["config"].erase("input_layers");
    CHECK_THAT(refusal(other), Contains("input_layers lists no tensors"));
  }
}

TEST_CASE("arguments that aren't supported are named", "[model][refusals]") {
  const auto attention = [](json arguments, json keywords) {
    json config = functional(
        "m",
        {input("x", {nullptr, 6, 8}), layer("MultiHeadAttention", "mha", {{"num_heads", 2}, {"key_dim", 4}},
                                            std::move(arguments), std::move(keywords))},
        {"x", 0, 0}, {"mha", 0, 0});
    return refusal(config);
  };
  const json pair = {tensor("x"), tensor("x")};
  CHECK_THAT(attention(pair, {{"attention_mask", tensor("x")}}),
             Contains("'mha'") && Contains("attention_mask"));
  CHECK_THAT(attention(pair, {{"return_attention_scores", true}}), Contains("return_attention_scores"));
  CHECK_THAT(attention({tensor("x"), tensor("x"), 3}, json::object()), Contains("argument 2"));
  CHECK_THAT(attention({tensor("x"), nullptr, tensor("x")}, json::object()), Contains("argument 1"));
  const json constant = {{"class_name", "__tensor__"}, {"config", {{"value", {1}}}}};
  CHECK_THAT(attention({tensor("x"), constant}, json::object()), Contains("constant"));
  CHECK(attention({tensor("x"), tensor("x"), tensor("x"), nullptr},
                  {{"mask", nullptr}, {"return_attention_scores", false}}) == "nothing was refused");
  CHECK(attention(json::array({tensor("x")}),
                  {{"value", tensor("x")}, {"key", tensor("x")}, {"training", true}}) ==
        "nothing was refused");
}

TEST_CASE("shapes that don't fit name the layer's path and both shapes", "[model][refusals]") {
  SECTION("a shared layer on two widths") {
    json shared = dense("shared", "x");
    shared["inbound_nodes"].push_back(node("wide"));
    json sum = layer("Concatenate", "both", json::object(),
                     json::array({json::array({tensor("shared", 0), tensor("shared", 1)})}));
    CHECK_THAT(refusal(model({dense("wide", "x", 5), shared, sum})),
               Contains("layer 'shared' (Dense)") && Contains("(4, 4)") && Contains("(5, 4)"));
  }
  SECTION("a nested model given another shape") {
    json inner = functional("inner", {input("i", {nullptr, 5}), dense("d", "i")}, {"i", 0, 0}, {"d", 0, 0});
    inner["inbound_nodes"] = json::array({node("x")});
    CHECK_THAT(refusal(model({inner})),
               Contains("'inner'") && Contains("(5,)") && Contains("(4,)") && Contains("'i'"));
    inner["inbound_nodes"][0]["args"] = {tensor("x"), tensor("x")};
    CHECK_THAT(refusal(model({inner})), Contains("has 1 inputs but is called with 2"));
  }
  SECTION("deep inside") {
    json add = layer("Add", "sum", json::object(), json::array({json::array({tensor("d"), tensor("e")})}));
    json inner = functional("inner", {input("i"), dense("d", "i", 3), dense("e", "i", 5), add}, {"i", 0, 0},
                            {"sum", 0, 0});
    inner["inbound_nodes"] = json::array({node("x")});
    CHECK_THAT(refusal(model({inner})),
               Contains("'inner'") && Contains("'sum' (Add)") && Contains("(3,)") && Contains("(5,)"));
  }
}

TEST_CASE("inputs that can't be are refused", "[model][refusals]") {
  const auto with_shape = [](json shape) {
    return refusal(
        functional("m", {input("x", std::move(shape)), dense("a", "x")}, {"x", 0, 0}, {"a", 0, 0}));
  };
  CHECK_THAT(with_shape({nullptr, nullptr, 4}), Contains("input 'x'") && Contains("None"));
  CHECK_THAT(with_shape({nullptr, 0}), Contains("(0,)"));
  CHECK_THAT(with_shape({nullptr, -4}), Contains("at least 1"));
  CHECK_THAT(with_shape({nullptr, 1.5}), Contains("isn't an integer"));
  CHECK_THAT(with_shape("4"), Contains("batch dimension"));
  json sparse = functional("m", {input("x"), dense("a", "x")}, {"x", 0, 0}, {"a", 0, 0});
  sparse["config"]["layers"][0]["config"]["sparse"] = true;
  CHECK_THAT(refusal(sparse), Contains("input 'x' is sparse"));
  sparse["config"]["layers"][0]["config"] = {{"batch_shape", {nullptr, 4}}, {"dtype", "string"}};
  CHECK_THAT(refusal(sparse), Contains("input 'x'") && Contains("'string'"));
}

TEST_CASE("hostile configs are refused in bounded time and memory", "[model][refusals]") {
  SECTION("sizes whose product overflows") {
    json config = functional("m", {input("x", {nullptr, 1LL << 40, 1LL << 40}), dense("a", "x")}, {"x", 0, 0},
                             {"a", 0, 0});
    CHECK_THAT(refusal(config), Contains("2^40"));
    CHECK_THAT(refusal(model({layer("Dense", "a", {{"units", 1LL << 62}}, json::array({tensor("x")}))})),
               Contains("'a' (Dense)") && Contains("2^40"));
  }
  SECTION("deep nesting") {
    CHECK_THAT(refusal(std::string(100000, '[')), Contains("nested deeper"));
    std::string objects;
    for (int i = 0; i < 100000; ++i) objects += "{\"config\":";
    CHECK_THAT(refusal(objects), Contains("nested deeper"));
  }
  SECTION("nested models that unfold without end") {
    json config = functional("m0", {input("i"), dense("d", "i")}, {"i", 0, 0}, {"d", 0, 0});
    for (int depth = 0; depth < 24; ++depth) {
      config["inbound_nodes"] = json::array();
      const std::string inner = config["name"];
      config["inbound_nodes"].push_back(node("i"));
      config["inbound_nodes"].push_back(node(inner));
      const std::string name = "m" + std::to_string(depth + 1);
      // Python's last call: a nested Functional's are counted from 1 in output_layers.
      config = functional(name.c_str(), {input("i"), config}, {"i", 0, 0}, {inner, 2, 0});
    }
    CHECK_THAT(refusal(config), Contains("calls of layers"));
  }
  SECTION("a chain longer than the stack") {
    std::string chain =
        R"({"class_name": "Sequential", "config": {"name": "s", "build_input_shape": [null, 4], "layers": [)";
    constexpr int k_layers = 40000;
    for (int i = 0; i < k_layers; ++i)
      chain += (i == 0 ? "" : ", ") +
               std::string(R"({"class_name": "Activation", "config": {"activation": "relu", "name": ")") +
               std::to_string(i) + "\"}}";
    CHECK(Model::from_config(chain + "]}}").graph().calls.size() == k_layers);
  }
}

TEST_CASE("whatever is changed in a config, it is read or refused in words", "[model][refusals]") {
  std::mt19937_64 random(1);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::vector<json> replacements = {nullptr,
                                          true,
                                          -1,
                                          0,
                                          1LL << 62,
                                          1.5,
                                          "",
                                          "x",
                                          json::array(),
                                          json::object(),
                                          json::array({nullptr}),
                                          json::array({"x", 0, 0})};
  // One random place in a value, by a random walk.
  const auto mutate = [&](json& root) {
    json* at = &root;
    while (at->is_structured() && !at->empty() && below(8) != 0) {
      auto next = at->begin();
      std::advance(next, static_cast<std::ptrdiff_t>(below(at->size())));
      at = &*next;
    }
    if (at->is_structured() && !at->empty() && below(2) == 0) {
      auto gone = at->begin();
      std::advance(gone, static_cast<std::ptrdiff_t>(below(at->size())));
      at->erase(gone);
    } else {
      *at = replacements[below(replacements.size())];
    }
  };
  int refused = 0;
  int read = 0;
  for (const char* fixture : {"nested", "tiny_gpt", "two_outputs", "mlp_sgd", "einsum"}) {
    const json original = golden_json(std::string(fixture) + "/model.json");
    for (int round = 0; round < 300; ++round) {
      json config = original;
      for (std::size_t i = 0; i <= below(2); ++i) mutate(config["config"]);
      const std::string text = config.dump();
      CAPTURE(fixture, round);
      try {
        (void)Model::from_config(text);
        ++read;
      } catch (const ConfigError& error) {
        ++refused;
        REQUIRE_FALSE(std::string(error.what()).empty());
      }
    }
  }
  CHECK(refused > 100);
  CHECK(read > 100);
}
