#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "runtime/error.hpp"
#include "runtime/model/build.hpp"
#include "test/model/golden_file.hpp"

using namespace rankine;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

/// The same decoder as the fixture tiny_gpt, which Keras made.
Model tiny_gpt() {
  ModelBuilder gpt("tiny_gpt");
  const Symbol tokens = gpt.input("tokens", {16}, DType::int32);
  const Symbol positions = gpt.input("positions", {16}, DType::int32);
  const auto named = [](const std::string& name) { return NamedAttribute("name", name.c_str()); };
  const Symbol token =
      gpt.layer("Embedding", {{"input_dim", 101}, {"output_dim", 32}, named("token_embedding")}, {tokens});
  const Symbol position = gpt.layer(
      "Embedding", {{"input_dim", 16}, {"output_dim", 32}, named("position_embedding")}, {positions});
  Symbol x = gpt.layer("Add", {}, {token, position});
  for (const std::string block : {"block0", "block1"}) {
    Symbol y = gpt.layer("LayerNormalization", {{"epsilon", 1e-5}, named(block + "_norm_1")}, {x});
    y = gpt.layer("MultiHeadAttention", {{"num_heads", 4}, {"key_dim", 8}, named(block + "_attention")},
                  {y, y}, {.use_causal_mask = true});
    x = gpt.layer("Add", {}, {x, y});
    y = gpt.layer("LayerNormalization", {{"epsilon", 1e-5}, named(block + "_norm_2")}, {x});
    y = gpt.layer("Dense", {{"units", 128}, {"activation", "gelu"}, named(block + "_mlp_up")}, {y});
    y = gpt.layer("Dense", {{"units", 32}, named(block + "_mlp_down")}, {y});
    x = gpt.layer("Add", {}, {x, y});
  }
  x = gpt.layer("LayerNormalization", {{"epsilon", 1e-5}, named("final_norm")}, {x});
  return gpt.build({gpt.layer("Dense", {{"units", 101}, named("logits")}, {x})});
}

/// Shared layers, dropout, several inputs and outputs, automatic names.
Model everything() {
  ModelBuilder builder("everything");
  const Symbol a = builder.input("a", {4});
  const Symbol b = builder.input("b", {4});
  Symbol left = builder.layer("Dense", {{"units", 4}, {"use_bias", false}}, {a});
  const Symbol right = builder.again(left, {b});
  left = builder.layer("Dropout", {{"rate", 0.5}}, {left});
  const Symbol both = builder.layer("Concatenate", {{"axis", -1}}, {left, right});
  const Symbol grid = builder.layer("Reshape", {{"target_shape", std::vector<std::int64_t>{4, 2}}}, {both});
  const Symbol heads =
      builder.layer("GroupQueryAttention",
                    {{"head_dim", 2}, {"num_query_heads", 4}, {"num_key_value_heads", 2}}, {grid, grid});
  const Symbol flat = builder.layer("Flatten", {}, {heads});
  return builder.build({builder.layer("Dense", {{"units", 3}}, {flat}), right});
}

}  // namespace

TEST_CASE("a model built in C++ has what Keras's model has", "[model][build]") {
  const Model built = tiny_gpt();
  const json expected = golden_json("tiny_gpt/expected.json")["variables"];
  REQUIRE(built.variables().size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(built.variables()[i].path == expected[i]["path"]);
    CHECK("/" + built.variables()[i].structural_path == expected[i]["h5"]);
    CHECK(built.variables()[i].shape.sizes() == expected[i]["shape"].get<std::vector<std::int64_t>>());
  }
  // The calls and their order are those of the model that Keras wrote.
  const Model read = Model::from_config(golden_text("tiny_gpt/model.json"));
  REQUIRE(built.graph().calls.size() == read.graph().calls.size());
  for (std::size_t i = 0; i < read.graph().calls.size(); ++i) {
    CHECK(built.graph().calls[i].layer->common().class_name ==
          read.graph().calls[i].layer->common().class_name);
    CHECK(built.graph().calls[i].variables == read.graph().calls[i].variables);
    CHECK(built.graph().calls[i].arguments.use_causal_mask ==
          read.graph().calls[i].arguments.use_causal_mask);
  }
}

TEST_CASE("automatic names count as Keras's do", "[model][build]") {
  const Model model = everything();
  std::vector<std::string> paths;
  for (const Variable& variable : model.variables()) paths.push_back(variable.path);
  CHECK(paths[0] == "dense/kernel");
  CHECK(paths[1] == "grouped_query_attention/query/kernel");
  CHECK(paths.back() == "dense_1/bias");
  CHECK(model.input_names() == std::vector<std::string>{"a", "b"});
  CHECK(model.output_names() == std::vector<std::string>{"dense_1", "dense"});
}

TEST_CASE("a built model's config is what Keras was shown", "[model][build]") {
  // make_structure.py beside these files has Keras load them; test_model_structure.cpp compares what it makes
  // of them. Here: the builder still writes the same.
  CHECK(json::parse(everything().config()) == golden_json("structure/built_everything.json"));
  CHECK(json::parse(tiny_gpt().config()) == golden_json("structure/built_tiny_gpt.json"));
}

TEST_CASE("a built model round-trips through its config", "[model][build]") {
  const Model built = everything();
  const Model read = Model::from_config(built.config());
  CHECK(read.config() == built.config());
  REQUIRE(read.graph().values.size() == built.graph().values.size());
  for (std::size_t i = 0; i < read.graph().values.size(); ++i)
    CHECK(read.graph().values[i].spec == built.graph().values[i].spec);
}

TEST_CASE("faults of a built model are named", "[model][build]") {
  ModelBuilder builder("m");
  const Symbol x = builder.input("x", {4});
  SECTION("an attribute that the layer doesn't have") {
    const Symbol y = builder.layer("Dense", {{"unit", 3}}, {x});
    CHECK_THROWS_WITH(builder.build({y}), Contains("dense: layer 'dense' (Dense) lacks the key 'units'"));
  }
  SECTION("a misspelt one") {
    const Symbol y = builder.layer("Dense", {{"units", 3}, {"use_bais", false}}, {x});
    const Symbol z = builder.layer("Dense", {{"units", 3}}, {y});
    CHECK_THROWS_WITH(builder.build({z}), Contains("'use_bais'") && Contains("did you mean use_bias?"));
  }
  SECTION("a class that isn't known") {
    CHECK_THROWS_WITH(builder.build({builder.layer("Conv2D", {}, {x})}), Contains("conv2d (Conv2D)"));
  }
  SECTION("shapes that don't fit") {
    const Symbol y = builder.layer("Dense", {{"units", 3}}, {x});
    CHECK_THROWS_WITH(builder.build({builder.layer("Add", {}, {x, y})}), Contains("'add' (Add)"));
  }
  SECTION("a causal mask for a layer that takes none") {
    const Symbol y = builder.layer("Dense", {{"units", 3}}, {x}, {.use_causal_mask = true});
    CHECK_THROWS_WITH(builder.build({y}), Contains("use_causal_mask") && Contains("'dense'"));
  }
  SECTION("symbols of another builder, calls of inputs, layers for nothing") {
    CHECK_THROWS_AS(builder.layer("Dense", {{"units", 3}}, {Symbol{}}), ConfigError);
    CHECK_THROWS_WITH(builder.again(x, {x}), Contains("input 'x'"));
    builder.layer("Dense", {{"units", 3}, {"name", "forgotten"}}, {x});
    CHECK_THROWS_WITH(builder.build({builder.layer("Dense", {{"units", 3}}, {x})}), Contains("'forgotten'"));
  }
  SECTION("no outputs or no inputs of a call") {
    CHECK_THROWS_WITH(builder.build({}), Contains("output_layers lists no tensors"));
    CHECK_THROWS_WITH(builder.build({builder.layer("Dense", {{"units", 3}}, {})}),
                      Contains("without input tensors"));
  }
}
