// Which values of a graph have masks, as Keras passes them from layer to layer.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "runtime/error.hpp"
#include "runtime/model/build.hpp"

using namespace rankine;
using Catch::Matchers::Contains;
using json = nlohmann::json;

namespace {

Symbol masked_ids(ModelBuilder& model, std::int64_t width = 6) {
  const Symbol ids = model.input("ids", {5}, DType::int32);
  return model.layer("Embedding", {{"input_dim", 9}, {"output_dim", width}, {"mask_zero", true}}, {ids});
}

/// The mask of a model's only output, or -1.
int output_mask(const Model& model) {
  const Graph& graph = model.graph();
  return graph.values[static_cast<std::size_t>(graph.outputs[0])].mask;
}

json tensor(const char* layer, const char* dtype = "float32") {
  return {{"class_name", "__keras_tensor__"},
          {"config", {{"dtype", dtype}, {"keras_history", {layer, 0, 0}}}}};
}

json entry(const char* module, const char* class_name, const char* name, json config, json arguments,
           json keywords = json::object()) {
  config["name"] = name;
  json nodes = json::array();
  if (!arguments.empty()) nodes.push_back({{"args", std::move(arguments)}, {"kwargs", std::move(keywords)}});
  return {{"module", module},
          {"class_name", class_name},
          {"name", name},
          {"config", std::move(config)},
          {"registered_name", nullptr},
          {"inbound_nodes", std::move(nodes)}};
}

json input(const char* name, json shape, const char* dtype) {
  return entry("keras.layers", "InputLayer", name, {{"batch_shape", std::move(shape)}, {"dtype", dtype}},
               json::array());
}

/// A model of x and a mask, [5, 6] and `mask_shape`, whose last layer is its output.
std::string model_with_mask(json mask_shape, const std::vector<json>& layers,
                            const char* mask_dtype = "int32") {
  json all = {input("x", {nullptr, 5, 6}, "float32"), input("m", std::move(mask_shape), mask_dtype)};
  for (const json& layer : layers) all.push_back(layer);
  const json inputs = {{"x", 0, 0}, {"m", 0, 0}};
  const json model = {{"module", "keras"},
                      {"class_name", "Functional"},
                      {"config",
                       {{"name", "m"},
                        {"layers", all},
                        {"input_layers", inputs},
                        {"output_layers", {layers.back()["name"], 0, 0}}}}};
  return model.dump();
}

json attention(json keywords) {
  return entry("keras.layers", "MultiHeadAttention", "a", {{"num_heads", 2}, {"key_dim", 3}},
               {tensor("x"), tensor("x")}, std::move(keywords));
}

}  // namespace

TEST_CASE("an embedding's mask goes through attention, merges and dense layers", "[model][masks]") {
  ModelBuilder builder("m");
  const Symbol x = masked_ids(builder);
  const Symbol h = builder.layer(
      "GroupQueryAttention", {{"head_dim", 3}, {"num_query_heads", 2}, {"num_key_value_heads", 1}}, {x, x});
  Symbol y = builder.layer("Add", {}, {x, h});
  y = builder.layer("LayerNormalization", {}, {y});
  y = builder.layer("Dense", {{"units", 4}}, {y});
  const Model model = builder.build({y});
  const Graph& graph = model.graph();
  const int mask = output_mask(model);
  REQUIRE(mask >= 0);
  const GraphValue& made = graph.values[static_cast<std::size_t>(mask)];
  CHECK(made.spec == ValueSpec{{5}, DType::int32});
  CHECK(graph.calls[static_cast<std::size_t>(made.producer)].makes_mask);
  std::uint32_t number = 0;
  int attentions = 0;
  for (const GraphCall& call : graph.calls) {
    if (call.makes_mask) continue;
    CHECK(call.number == number++);  // masks don't change which random numbers a layer gets
    if (call.layer->common().class_name != "GroupQueryAttention") continue;
    ++attentions;
    CHECK(call.masks == std::vector<int>{mask, mask});
  }
  CHECK(attentions == 1);
}

/// Keras's layer takes the masks off the tensors that it is given, and puts the query's on its output.
TEST_CASE("MultiHeadAttention takes away its inputs' masks", "[model][masks]") {
  ModelBuilder builder("m");
  const Symbol x = masked_ids(builder);
  const Symbol h = builder.layer("MultiHeadAttention", {{"num_heads", 2}, {"key_dim", 3}}, {x, x});
  const Model alone = builder.build({h});
  CHECK(output_mask(alone) >= 0);
  const Model model = builder.build({builder.layer("Add", {}, {x, h})});
  CHECK(output_mask(model) < 0);
  for (const GraphCall& call : model.graph().calls)
    if (call.layer->common().class_name == "MultiHeadAttention") CHECK(call.masks[0] >= 0);
}

TEST_CASE("a mask ends where Keras ends it", "[model][masks]") {
  const auto ends = [](const std::string& kind, const std::vector<NamedAttribute>& config) {
    ModelBuilder builder("m");
    return output_mask(builder.build({builder.layer(kind, config, {masked_ids(builder)})})) < 0;
  };
  CHECK(ends("GlobalAveragePooling1D", {}));
  CHECK(ends("RMSNormalization", {}));
  CHECK(
      ends("EinsumDense", {{"equation", "abc,cd->abd"}, {"output_shape", std::vector<std::int64_t>{5, 4}}}));
  CHECK(ends("Flatten", {}));
  CHECK(ends("Reshape", {{"target_shape", std::vector<std::int64_t>{6, 5}}}));
  CHECK_FALSE(ends("Dropout", {{"rate", 0.5}}));
  CHECK_FALSE(ends("Activation", {{"activation", "relu"}}));
  // Keras gives back the tensor itself.
  CHECK_FALSE(ends("Reshape", {{"target_shape", std::vector<std::int64_t>{5, 6}}}));
}

TEST_CASE("a sum of masked and unmasked values has no mask", "[model][masks]") {
  ModelBuilder builder("m");
  const Symbol x = masked_ids(builder), other = builder.input("other", {5, 6});
  CHECK(output_mask(builder.build({builder.layer("Add", {}, {x, other})})) < 0);
}

TEST_CASE("a sum counts the rows that any of two masks counts", "[model][masks]") {
  ModelBuilder builder("m");
  const Symbol x = masked_ids(builder), more = builder.input("more", {5}, DType::int32);
  const Symbol y =
      builder.layer("Embedding", {{"input_dim", 9}, {"output_dim", 6}, {"mask_zero", true}}, {more});
  const Model model = builder.build({builder.layer("Average", {}, {x, y})});
  const GraphValue& joined = model.graph().values[static_cast<std::size_t>(output_mask(model))];
  CHECK(model.graph().calls[static_cast<std::size_t>(joined.producer)].inputs.size() == 2);
}

TEST_CASE("what Keras computes otherwise for masked inputs is refused by name", "[model][masks][refusals]") {
  for (const char* kind : {"Multiply", "Maximum", "Minimum"}) {
    ModelBuilder builder("m");
    const Symbol x = masked_ids(builder);
    const Symbol y = builder.layer(kind, {}, {x, x});
    CHECK_THROWS_WITH(builder.build({y}), Contains(kind) && Contains("masked") && Contains("Dense"));
  }
  ModelBuilder builder("m");
  const Symbol y = builder.layer("Softmax", {}, {masked_ids(builder)});
  CHECK_THROWS_WITH(builder.build({y}), Contains("Softmax") && Contains("masked"));
}

TEST_CASE("masks that a call is given are read", "[model][masks]") {
  const Model pooled = Model::from_config(model_with_mask(
      {nullptr, 5}, {entry("keras.src.ops.numpy", "NotEqual", "n", json::object(), {tensor("m", "int32"), 0}),
                     entry("keras.src.ops.numpy", "LogicalOr", "o", json::object(),
                           {tensor("n", "bool"), tensor("n", "bool")}),
                     entry("keras.layers", "GlobalAveragePooling1D", "p", json::object(),
                           json::array({tensor("x")}), {{"mask", tensor("o", "bool")}})}));
  const GraphCall& pool = pooled.graph().calls.back();
  CHECK(pool.inputs == std::vector<int>{0});
  REQUIRE(pool.masks.size() == 1);
  CHECK(pooled.graph().values[static_cast<std::size_t>(pool.masks[0])].spec == ValueSpec{{5}, DType::int32});

  const Model pairs = Model::from_config(
      model_with_mask({nullptr, 5, 5}, {attention({{"attention_mask", tensor("m", "int32")}})}));
  CHECK(pairs.graph().calls.back().masks == std::vector<int>{-1, -1, 1});
  const Model values =
      Model::from_config(model_with_mask({nullptr, 5}, {attention({{"value_mask", tensor("m", "int32")}})}));
  CHECK(values.graph().calls.back().masks == std::vector<int>{-1, 1});
}

TEST_CASE("masks that don't fit are refused with the layer and the argument", "[model][masks][refusals]") {
  const auto refused = [](json shape, const json& layer, const char* dtype = "int32") {
    try {
      (void)Model::from_config(model_with_mask(std::move(shape), {layer}, dtype));
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("nothing was refused");
  };
  CHECK_THAT(refused({nullptr, 5}, attention({{"attention_mask", tensor("m")}})),
             Contains("'a'") && Contains("attention_mask of (5,) int32") && Contains("(5, 5) int32"));
  CHECK_THAT(refused({nullptr, 5}, attention({{"value_mask", tensor("m")}}), "float32"),
             Contains("value_mask of (5,) float32"));
  CHECK_THAT(refused({nullptr, 5}, attention({{"key_mask", tensor("m")}})),
             Contains("key_mask, which isn't supported for it"));
  CHECK_THAT(refused({nullptr, 5}, attention({{"query_mask", tensor("m")}})),
             Contains("argument query_mask"));
  CHECK_THAT(refused({nullptr, 5}, entry("keras.layers", "Dense", "d", {{"units", 4}},
                                         json::array({tensor("x")}), {{"mask", tensor("m")}})),
             Contains("'d'") && Contains("mask, which isn't supported for it"));
}
